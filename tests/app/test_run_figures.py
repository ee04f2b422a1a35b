"""The figures of the whole run: their numbers are counted anew from the steps."""

import json
import math
import re

import plotly.graph_objects as go
import pytest

from app.figures.run.acceptance import acceptance
from app.figures.run.entropy import entropy
from app.figures.run.lane_run import LaneRun, stroke
from app.figures.run.log_probability import log_probability
from app.figures.run.passes import passes
from app.figures.run.tokens_per_pass import tokens_per_pass
from app.lanes import Spelling, lane_views
from app.overview import overview_data
from decoding.lane import Lane
from decoding.trace import Choice, Emitted
from tests.app.steps import make_step
from tests.app.toy_steps import GOLDEN_P, GOLDEN_Q, play, settings

HOSTILE = ["<b>", "&lt;", "${7*7}", "%{x}", "a" * 40, "\u05d0\u05d1", "·天空", "</script>"]
METHODS = ("single_token", "speculative", "mtad", "mtad")
TITLES = ("Single-token sampling", "<i>Speculative</i> " + "x" * 100, "MTAD · threshold 0.05", "MTAD · threshold 0.9")
FIGURES = (log_probability, entropy, tokens_per_pass, acceptance, passes)


def runs_of(count: int = 4) -> list[LaneRun]:
    chosen = [settings(threshold=threshold, seed=3) for threshold in (0.5, 0.5, 0.05, 0.9)]
    steps = [play(method, GOLDEN_P, GOLDEN_Q, lane) for method, lane in zip(METHODS, chosen, strict=True)]
    return [LaneRun(*lane, HOSTILE.__getitem__) for lane in zip(TITLES, steps, strict=True)][:count]


def taken(run: LaneRun) -> list[tuple[float, list[float]]]:
    """For each token of the text: its probability, and the law it was taken from, which lists all eight tokens."""
    laws = [
        (choice.top, token.token)
        for step in run.steps
        for choice, token in zip(step.choices, step.emitted, strict=True)
    ]
    return [(next(c.p for c in top if c.token == token), [c.p for c in top]) for top, token in laws]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_figure_is_one_that_plotly_takes(count: int):
    for figure in FIGURES:
        go.Figure(figure(runs_of(count)))


def test_log_probability_is_that_of_the_whole_text_so_far():
    runs = runs_of()
    for run, line in zip(runs, log_probability(runs)["data"], strict=True):
        probabilities = [p for p, _ in taken(run)]
        assert line["x"] == list(range(1, len(probabilities) + 1))
        assert line["y"] == pytest.approx(
            [math.log(math.prod(probabilities[: i + 1])) for i in range(len(probabilities))]
        )


def test_a_line_ends_before_an_impossible_token():
    step = make_step(emitted=[(1, "forced"), (2, "forced"), (3, "sampled")])
    impossible = step.model_copy(
        update={"emitted": (step.emitted[0], Emitted(token=2, origin="forced", log_p=-math.inf), step.emitted[2])}
    )
    line = log_probability([LaneRun("lane", [impossible], str)])["data"][0]
    assert line["y"] == [pytest.approx(math.log(0.5)), None, None]
    assert "log p = −∞" in line["hovertext"][1]


def test_entropy_is_that_of_the_laws():
    runs = runs_of()
    for run, line in zip(runs, entropy(runs)["data"], strict=True):
        laws = [law for _, law in taken(run)]
        assert line["y"] == pytest.approx([-sum(p * math.log(p) for p in law if p) for law in laws], abs=1e-6)


def test_tokens_per_pass_counts_decoded_tokens_alone():
    steps = [make_step(emitted=[(1, "forced")] * 3), make_step(1, 3, emitted=[(1, "accepted"), (2, "bonus")])]
    steps[0] = steps[0].model_copy(update={"cost": steps[0].cost.model_copy(update={"target_passes": 0})})
    steps.append(make_step(2, 5, emitted=[(1, "sampled")]))
    line = tokens_per_pass([LaneRun("lane", steps, str)])["data"][0]
    assert (line["x"], line["y"]) == ([5, 6], [2 / 1, 3 / 2])
    assert "3 tokens / 2 passes = 1.500" in line["hovertext"][-1]


def test_acceptance_is_counted_by_depth():
    runs = runs_of()
    lines = acceptance(runs)["data"]
    assert len(lines) == 3, "single-token sampling drafts nothing"
    for run, line in zip(runs[1:], lines, strict=True):
        for depth, share, hover in zip(line["x"], line["y"], line["hovertext"], strict=True):
            at_depth = [step.verdicts[depth - 1].accepted for step in run.steps if len(step.verdicts) >= depth]
            assert share == sum(at_depth) / len(at_depth)
            assert f"depth {depth}: {sum(at_depth)} of {len(at_depth)} " in hover
    assert acceptance(runs[:1]) is None


def test_blocks_of_time_follow_one_another_and_add_up():
    steps = [
        make_step(i, i, emitted=[(1, "sampled")], target=1.0, draft=0.5, draft_passes=4, seconds=1.75) for i in range(3)
    ]
    runs = [LaneRun("drafts", steps, str), LaneRun("alone", [make_step(emitted=[(1, "sampled")], target=2.0)], str)]
    target, draft = passes(runs)["data"]
    assert list(zip(draft["y"], draft["base"], draft["x"], strict=True)) == [(0, 0, 0.5), (0, 1.75, 0.5), (0, 3.5, 0.5)]
    assert list(zip(target["y"], target["base"], target["x"], strict=True)) == [
        (0, 0.5, 1.0),
        (0, 2.25, 1.0),
        (0, 4.0, 1.0),
        (1, 0, 2.0),
    ]
    assert target["width"] > draft["width"], "the two models are told apart without colour"
    assert target["customdata"][1] == [0, 1, 0]
    assert "rules and records: 250.0 ms" in draft["hovertext"][0]


def test_points_know_the_token_they_stand_for():
    runs = runs_of()
    for lane, (run, line) in enumerate(zip(runs, entropy(runs)["data"], strict=True)):
        places = [(lane, step.index, i) for step in run.steps for i in range(len(step.emitted))]
        assert [tuple(place) for place in line["customdata"]] == places


def test_lanes_differ_in_three_ways_and_look_the_same_everywhere():
    strokes = [stroke(lane) for lane in range(4)]
    for mark in ("colour", "dash", "symbol", "sign"):
        assert len({getattr(one, mark) for one in strokes}) == 4
    runs = runs_of()
    for figure in (log_probability, entropy, tokens_per_pass):
        drawn = [
            (line["line"]["color"], line["line"]["dash"], line["marker"]["symbol"]) for line in figure(runs)["data"]
        ]
        assert drawn == [(one.colour, one.dash, one.symbol) for one in strokes]


def test_text_is_only_text_and_titles_fit_a_phone():
    runs = runs_of()
    for make in FIGURES:
        figure = make(runs)
        texts = [text for line in figure["data"] for text in line["hovertext"]]
        titles = [note["text"] for note in figure["layout"].get("annotations", [])]
        assert not re.search(r"<(?!br>)[a-z/]", " ".join([*texts, *titles]))
        assert all(len(re.sub("&[a-z]+;", "<", title)) <= 48 for title in titles)
        assert "template" not in str(figure), "a template would read %{x} in a token"


def views_of(*lanes: tuple[str, list]):
    spellings = [Spelling(str, frozenset(), frozenset())] * len(lanes)
    views = lane_views([Lane(method=method) for method, _ in lanes], [""] * len(lanes), spellings)
    for view, (_, steps) in zip(views, lanes, strict=True):
        for step in steps:
            choices = (Choice(top=(), entropy_p=0.25, entropy_q=None),) * len(step.emitted)
            view.add(step.model_copy(update={"choices": choices}))
    return views


def panels_of(data: dict) -> dict[str, dict]:
    return {panel["name"]: panel for panel in json.loads(data["text"])["panels"]}


def test_tables_have_a_column_a_lane_and_say_where_nothing_is():
    steps = [make_step(emitted=[(1, "accepted"), (2, "resampled")], refused=[4], target=0.5, draft=0.5, draft_passes=2)]
    panels = panels_of(
        overview_data("run", views_of(("single_token", [make_step(emitted=[(1, "sampled")])]), ("speculative", steps)))
    )
    titles = ["Single-token sampling", "Speculative decoding"]
    assert panels["log-probability"]["head"] == ["token", *titles]
    assert panels["log-probability"]["rows"] == [["1", "−0.693", "−0.693"], ["2", "–", "−1.386"]]
    assert panels["entropy"]["rows"] == [["1", "0.250", "0.250"], ["2", "–", "0.250"]]
    assert panels["tokens-per-pass"]["rows"] == [["1", "1/1 = 1.000", "2/1 = 2.000"]]
    assert panels["passes"]["rows"][1] == [titles[1], "1", "1", "500.0 ms", "2", "500.0 ms", "0.0 ms", "1000.0 ms"]


def test_a_lane_without_a_draft_is_named():
    panels = panels_of(overview_data("run", views_of(("single_token", [make_step(emitted=[(1, "sampled")])]))))
    assert panels["acceptance"]["figure"] is None
    assert all("No draft in Single-token sampling." in panels[name]["note"] for name in ("acceptance", "passes"))


def test_before_the_first_step_there_is_nothing_to_see():
    assert overview_data("run", views_of(("mtad", []))) == {"run": "run", "text": ""}
