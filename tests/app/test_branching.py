"""A branch goes on from a finished run with another token; it stands beside its origin."""

import json

import pytest

from app.requests import branch_of, read_place
from app.settings_form import InvalidSettings
from decoding.prompting import InvalidPrompt
from decoding.trace import Trace
from tests.app.test_runner import lanes, pair, runner, runner_on  # noqa: F401
from tests.app.unpack import lanes_of
from tests.browser.scripted import PRESETS

SINGLE, SPECULATIVE, MTAD = range(3)


def finished(runner, prompt="plain", **settings) -> tuple[str, tuple[Trace, ...]]:  # noqa: F811
    last = list(runner.moments(runner.request("me", prompt, lanes(**settings))))[-1]
    run = last.keeping["run"]
    return run, runner.finished(run)


def test_a_branch_keeps_the_beginning_and_takes_the_token(runner):  # noqa: F811
    run, traces = finished(runner)
    written = traces[MTAD].result.token_ids
    other = written[0]
    last = list(runner.moments(runner.branch("me", run, MTAD, 5, other)))[-1]
    assert last.kind == "done", last.text
    shown = lanes_of(last.race)
    assert [lane["title"] for lane in shown[:3]] == ["Single-token sampling", "Speculative decoding", "MTAD"]
    assert shown[3]["title"] == "MTAD · branch at token 6"
    tokens = [token for token in shown[3]["tokens"] if token["origin"] != "refused"]
    assert [token["id"] for token in tokens[:6]] == [*written[:5], other]
    assert [token["origin"] for token in tokens[:6]] == ["forced"] * 6
    assert len(tokens) == 12
    first = json.loads(last.steps["lanes"][3]["steps"][0])
    assert first["words"].startswith("After 5 tokens of the lane it branches off, “·the”, of probability p = ")
    kept = runner.finished(last.keeping["run"])
    assert kept[:3] == traces
    assert kept[3].forced == (*written[:5], other)


def test_where_there_is_no_room_the_last_lane_gives_way_but_never_the_origin(runner):  # noqa: F811
    _, traces = finished(runner)
    four = (*traces, traces[SINGLE])
    beside = branch_of("", four, PRESETS, MTAD, 0, 1)
    assert (beside.beside, beside.origin) == (four[:3], MTAD)
    last = branch_of("", four, PRESETS, 3, 0, 1)
    assert (last.beside, last.origin) == ((four[0], four[1], four[3]), 2)


@pytest.mark.parametrize(("lane", "position"), [(3, 0), (-1, 0), (0, 12), (0, -1)])
def test_a_place_that_is_not_there_is_refused(runner, lane, position):  # noqa: F811
    run, _ = finished(runner)
    with pytest.raises(InvalidSettings, match="no such token"):
        runner.branch("me", run, lane, position, 1)


def test_a_token_that_is_not_there_is_refused(runner):  # noqa: F811
    run, _ = finished(runner)
    with pytest.raises(InvalidPrompt, match="There is no token"):
        runner.branch("me", run, MTAD, 3, 10**6)


def test_a_run_that_is_gone_is_refused(runner):  # noqa: F811
    with pytest.raises(InvalidSettings, match="not kept on the server any more"):
        runner.branch("me", "nothing", MTAD, 3, 1)


def test_a_run_of_models_that_are_not_offered_can_only_be_looked_at(runner):  # noqa: F811
    _, traces = finished(runner)
    foreign = [
        trace.model_copy(update={"target": trace.target.model_copy(update={"source": "/elsewhere"})})
        for trace in traces
    ]
    with pytest.raises(InvalidSettings, match="looked at, not continued"):
        branch_of("", foreign, PRESETS, MTAD, 3, 1)


@pytest.mark.parametrize("place", [None, {}, {"run": "x"}, {"run": "x", "lane": "a", "position": 0, "token": 0}, "x"])
def test_what_is_no_place_is_refused(place):
    with pytest.raises(InvalidSettings):
        read_place(place)
