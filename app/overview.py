"""What the views of the whole run are fed: the figures of all lanes with their tables, once, when a race is over."""

import json
from collections.abc import Sequence
from math import inf
from typing import Any

from app.figures.run.acceptance import acceptance, share
from app.figures.run.entropy import entropies, entropy
from app.figures.run.lane_run import LaneRun, stroke
from app.figures.run.log_probability import cumulative, log_probability, written
from app.figures.run.passes import milliseconds, passes
from app.figures.run.tokens_per_pass import tokens_per_pass, yields
from app.figures.style import Figure
from app.inspector import visible
from app.lanes import LaneView
from decoding.metrics import acceptance_by_depth, run_metrics

Data = dict[str, Any]
Row = list[str]
NO_OVERVIEW: Data = {"run": "", "text": ""}
NOTHING = "–"


def overview_data(run: str, views: Sequence[LaneView]) -> Data:
    """All views of a race as JSON text; none of one in which no step was made."""
    runs = [LaneRun(view.title, view.steps, visible(view.spelling)) for view in views]
    if not any(lane.steps for lane in runs):
        return {"run": run, "text": ""}
    shown = {
        "lanes": [{"title": lane.title, "sign": stroke(i).sign, "dash": stroke(i).dash} for i, lane in enumerate(runs)],
        "panels": [
            _log_probability(runs),
            _entropy(runs),
            _tokens_per_pass(runs),
            _acceptance(runs),
            _passes(runs),
        ],
    }
    return {"run": run, "text": json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)}


def _log_probability(runs: Sequence[LaneRun]) -> Data:
    sums = [cumulative(run) for run in runs]
    impossible = [run.title for run, values in zip(runs, sums, strict=True) if -inf in values]
    note = (
        "Sum of log p under the target, before the warp, up to each token. The flatter a line, the likelier its text."
    )
    if impossible:
        note += f" A token with p = 0 ends the line of {', '.join(impossible)}."
    cells = [[written(value) for value in values] for values in sums]
    return _panel("log-probability", "Log-probability", note, log_probability(runs), *_by_row("token", runs, cells))


def _entropy(runs: Sequence[LaneRun]) -> Data:
    note = "How open the target was, before the warp, at each token: 0 is certainty, ln n is n tokens equally likely."
    cells = [[f"{value:.3f}" for value in entropies(run)] for run in runs]
    return _panel("entropy", "Entropy of the target", note, entropy(runs), *_by_row("token", runs, cells))


def _tokens_per_pass(runs: Sequence[LaneRun]) -> Data:
    note = "Tokens written so far / target passes so far; a line has one point a step. The prompt's passes are apart."
    cells = [_yield_cells(run) for run in runs]
    figure = tokens_per_pass(runs)
    return _panel("tokens-per-pass", "Tokens per target pass", note, figure, *_by_row("after step", runs, cells))


def _yield_cells(run: LaneRun) -> Row:
    found = [f"{y.decoded}/{y.passes} = {y.rate:.3f}" for y in yields(run)]
    return [NOTHING] * (len(run.steps) - len(found)) + found


def _acceptance(runs: Sequence[LaneRun]) -> Data:
    drafting = [run for run in runs if run.drafts]
    note = " ".join(["Share of the tokens drafted at each depth that were kept.", *_without_draft(runs)])
    cells = [[share(depth) for depth in acceptance_by_depth(run.steps)] for run in drafting]
    return _panel("acceptance", "Acceptance by depth", note, acceptance(runs), *_by_row("depth", drafting, cells))


def _passes(runs: Sequence[LaneRun]) -> Data:
    note = " ".join(
        [
            "Every step: its draft passes (low blocks), then its target passes (tall blocks); gaps are rules and records.",
            *_without_draft(runs),
        ]
    )
    head = ["lane", "steps", "target passes", "their time", "draft passes", "their time", "rest", "whole time"]
    return _panel("passes", "Passes over time", note, passes(runs), head, [_pass_row(run) for run in runs])


def _pass_row(run: LaneRun) -> Row:
    metrics = run_metrics(run.steps, prefill_seconds=0.0)  # not shown
    rest = max(0.0, metrics.seconds - metrics.target_seconds - metrics.draft_seconds)
    times = [
        milliseconds(seconds) for seconds in (metrics.target_seconds, metrics.draft_seconds, rest, metrics.seconds)
    ]
    counts = [str(value) for value in (len(run.steps), metrics.target_passes, metrics.draft_passes)]
    return [run.title, counts[0], counts[1], times[0], counts[2], times[1], times[2], times[3]]


def _without_draft(runs: Sequence[LaneRun]) -> list[str]:
    """Which lanes have none, in a sentence; nothing if all have."""
    titles = [run.title for run in runs if not run.drafts]
    return [f"No draft in {', '.join(titles)}."] if titles else []


def _by_row(name: str, runs: Sequence[LaneRun], cells: Sequence[Row]) -> tuple[Row, list[Row]]:
    """A table with a column for each lane: its head and its rows, numbered from 1."""
    most = max(map(len, cells), default=0)
    rows = [[str(i + 1), *(lane[i] if i < len(lane) else NOTHING for lane in cells)] for i in range(most)]
    return [name, *(run.title for run in runs)], rows


def _panel(name: str, title: str, note: str, figure: Figure | None, head: Row, rows: list[Row]) -> Data:
    return {"name": name, "title": title, "note": note, "figure": figure, "head": head, "rows": rows}
