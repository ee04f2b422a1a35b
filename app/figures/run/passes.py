"""Where a lane's time went: the passes of both models, step after step."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from app.figures.run.lane_run import LaneRun, signed_title
from app.figures.style import LIGHT, Figure
from app.figures.text import plain, shorten
from app.narration import count
from decoding.trace import Cost, Step

MARGIN = {"l": 10, "r": 10, "t": 4, "b": 44}
BOTTOM = 0.4  # of a lane's blocks, below its row's middle; blocks of the draft are half as high as those of the target
HEIGHTS = {"target": 0.5, "draft": 0.25}
MOST_OUTLINED = 130  # blocks of a lane: more are too narrow for an outline
Model = Literal["target", "draft"]


def passes(runs: Sequence[LaneRun]) -> Figure:
    """A row for each lane: one block for a step's draft passes and one for its target passes, over the lane's own time.

    A step's cost has one figure of time for each model; the draft's passes come first, as they do in every method that drafts.
    """
    rows = max(2, len(runs))
    return {
        "data": [_blocks("target", runs), _blocks("draft", runs)],
        "layout": {
            "margin": MARGIN,
            "barmode": "overlay",
            "xaxis": {"title": {"text": "seconds of the lane's own steps, prompt apart"}, "rangemode": "tozero"},
            "yaxis": {"range": [rows - 0.5, -0.55], "visible": False},
            "annotations": [_title(lane, run) for lane, run in enumerate(runs)],
        },
    }


def starts(run: LaneRun) -> list[float]:
    """When each step began, in seconds of the lane's own time."""
    return list(accumulate((step.cost.seconds for step in run.steps), initial=0.0))[: len(run.steps)]


def _seconds(cost: Cost, model: Model) -> float:
    return cost.target_seconds if model == "target" else cost.draft_seconds


def _blocks(model: Model, runs: Sequence[LaneRun]) -> Figure:
    blocks = [
        (lane, step, start if model == "draft" else start + step.cost.draft_seconds)
        for lane, run in enumerate(runs)
        for step, start in zip(run.steps, starts(run), strict=True)
        if _seconds(step.cost, model)
    ]
    outline = max((len(run.steps) for run in runs), default=0) <= MOST_OUTLINED
    return {
        "type": "bar",
        "orientation": "h",
        "y": [lane for lane, _, _ in blocks],
        "base": [start for _, _, start in blocks],
        "x": [_seconds(step.cost, model) for _, step, _ in blocks],
        "offset": BOTTOM - HEIGHTS[model],
        "width": HEIGHTS[model],
        "marker": {"color": LIGHT[model], "line": {"width": 0.6 if outline else 0, "color": LIGHT["card"]}},
        "hoverinfo": "text",
        "hovertext": [_hover(runs[lane], step) for lane, step, _ in blocks],
        "customdata": [[lane, step.index, max(0, len(step.emitted) - 1)] for lane, step, _ in blocks],
    }


def _hover(run: LaneRun, step: Step) -> str:
    cost = step.cost
    rest = max(0.0, cost.seconds - cost.target_seconds - cost.draft_seconds)
    lines = [
        plain(shorten(run.title)),
        f"step {step.index + 1}: {count(len(step.emitted), 'token')} written in {milliseconds(cost.seconds)}",
        f"draft: {_passes(cost.draft_passes)}, {milliseconds(cost.draft_seconds)}",
        f"target: {_passes(cost.target_passes)}, {milliseconds(cost.target_seconds)}",
        f"rules and records: {milliseconds(rest)}",
    ]
    return "<br>".join(lines)


def milliseconds(seconds: float) -> str:
    """A time in milliseconds.

    >>> milliseconds(0.08421)
    '84.2 ms'
    """
    return f"{1000 * seconds:.1f} ms"


def _passes(number: int) -> str:
    return f"{number} pass{'' if number == 1 else 'es'}"


def _title(lane: int, run: LaneRun) -> Figure:
    return {
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "y": lane + BOTTOM - HEIGHTS["target"] - 0.02,
        "yanchor": "bottom",
        "text": signed_title(lane, run),
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": LIGHT["ink"]},
    }
