"""The lesson: every stop shows what it speaks of, with figures that are the recorded run's."""

import json
import re
from math import exp

import pytest

from app.examples import recording, run_id
from app.lesson import FEWEST_STOPS, MOST_STOPS, lesson_text, stops
from app.places import SIGHTS, Place, find
from decoding.trace import Step
from tests.app.told import decimals, figures_of

SHOWN = json.loads(lesson_text())
PLANNED = stops()
BOTH = list(zip(PLANNED, SHOWN, strict=True))


def step_of(shown: dict) -> Step:
    return recording(shown["example"]).traces[shown["lane"]].steps[shown["step"]]


def by_title(part: str) -> dict:
    return next(stop for stop in SHOWN if part in stop["title"])


def test_it_is_short_and_every_stop_has_a_title_of_its_own():
    assert FEWEST_STOPS <= len(SHOWN) <= MOST_STOPS
    assert len({stop["title"] for stop in SHOWN}) == len(SHOWN)
    assert all(100 < len(stop["text"]) < 520 for stop in SHOWN)


@pytest.mark.parametrize("planned, shown", BOTH, ids=[stop.title for stop in PLANNED])
def test_a_stop_shows_its_sight_with_the_figures_of_the_run(planned, shown):
    traces = recording(planned.example).traces
    place = Place(shown["lane"], shown["step"], shown["token"])
    assert find(planned.sight, traces) == place
    assert traces[place.lane].method == SIGHTS[planned.sight][0]
    assert shown["run"] == run_id(planned.example)
    assert decimals(shown["text"]) <= figures_of(traces, place)
    assert not re.search("[{}]", shown["text"])


def test_the_refusal_is_one():
    step, text = step_of(by_title("refusal")), by_title("refusal")["text"]
    refused = next(verdict for verdict in step.verdicts if not verdict.accepted)
    assert refused.uniform >= exp(refused.log_p - refused.log_q)
    assert step.emitted[-1].origin == "resampled"
    assert f"u = {refused.uniform:.3g}" in text


def test_the_rescue_fails_before_it_passes():
    verdicts = step_of(by_title("rescue")).verdicts
    kept = [verdict for verdict in verdicts if verdict.accepted]
    assert not all(verdict.passes for verdict in kept)
    assert kept[-1].passes


def test_the_whole_block_is_kept():
    step = step_of(by_title("bargain of"))
    assert [token.origin for token in step.emitted] == ["accepted"] * len(step.verdicts) + ["bonus"]
