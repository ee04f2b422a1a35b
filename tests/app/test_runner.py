"""Races on scripted models: what the page is told, and that stopping ends the compute."""

import threading

import pytest

from app.engine import make_engine
from app.models import Models
from app.runner import Runner
from app.runs import Runs
from app.settings_form import read_lanes, read_settings
from decoding.prompting import InvalidPrompt
from decoding.trace import Trace
from decoding.weights import WeightsError
from tests.app.unpack import lanes_of
from tests.browser.scripted import FAILING, PRESETS, scripted_pair


def runner_on(pair_or_error):
    runs = Runs()
    models = Models(PRESETS, loader(pair_or_error))
    return Runner(models, runs, make_engine(models, runs))


def loader(pair_or_error):
    def load(key):
        if isinstance(pair_or_error, Exception):
            raise pair_or_error
        return pair_or_error

    return load


@pytest.fixture
def pair():
    return scripted_pair(0.0)


@pytest.fixture
def runner(pair):
    runner = runner_on(pair)
    runner.models.load_here()
    return runner


def lanes(**settings):
    return read_lanes(None, read_settings({"max_new_tokens": 12} | settings))


def text_of(lane):
    written = [token for token in lane["tokens"] if token["origin"] != "refused"]
    return "".join(text for token in written for kind, text in token["parts"] if kind != "byte")


def test_a_race_ends_with_all_lanes_and_a_summary(runner):
    moments = list(runner.moments(runner.request("me", "plain", lanes())))
    last = moments[-1]
    assert (last.kind, [lane["state"] for lane in lanes_of(last.race)]) == ("done", ["finished"] * 3)
    assert last.text.startswith("Finished: 36 tokens in 3 lanes")
    assert text_of(lanes_of(last.race)[0]).startswith(" the sky is")


def test_the_end_of_a_text_is_told(runner):
    last = list(runner.moments(runner.request("me", "short", lanes())))[-1]
    assert {lane["remark"] for lane in lanes_of(last.race)} == {"Finished: the model ended its text."}
    assert lanes_of(last.race)[0]["tokens"][-1]["parts"] == [["special", "<|end|>"]]


def test_unicode_is_joined_in_every_lane(runner):
    last = list(runner.moments(runner.request("me", "unicode", lanes(temperature=0))))[-1]
    assert [text_of(lane) for lane in lanes_of(last.race)] == ["😀 天空\n日\t blue\n."] * 3


@pytest.mark.parametrize("prompt", ["", " \n\t", None])
def test_an_empty_prompt_is_refused_at_once(runner, prompt):
    with pytest.raises(InvalidPrompt, match="The prompt is empty"):
        runner.request("me", prompt, lanes())


@pytest.mark.parametrize(
    ("prompt", "words"), [("x" * 600, "too long"), ("x" * 300_000, "too long"), ("a\ud83d", "not valid text")]
)
def test_a_prompt_that_cannot_be_run_is_refused_at_once(runner, prompt, words):
    with pytest.raises(InvalidPrompt, match=words):
        runner.request("me", prompt, lanes())


def test_a_prompt_that_came_before_the_models_is_checked_once_they_are_there(pair):
    gate = threading.Event()
    runs = Runs()
    models = Models(PRESETS, lambda key: gate.wait() and pair)
    runner = Runner(models, runs, make_engine(models, runs))
    moments = runner.moments(runner.request("me", "x" * 600, lanes()))
    assert next(moments).text.startswith("Loading Scripted pair")
    gate.set()
    last = list(moments)[-1]
    assert (last.kind, last.race) == ("error", None)
    assert "too long" in last.text


def test_models_that_cannot_be_loaded_are_a_sentence_and_are_tried_again():
    error = WeightsError("'target' is not on this machine.")
    runner = runner_on(error)
    for _ in range(2):
        last = list(runner.moments(runner.request("me", "plain", lanes())))[-1]
        assert (last.kind, last.text, last.race) == ("error", str(error), None)


def test_stop_ends_the_compute_before_the_next_pass(runner, pair):
    request = runner.request("me", "plain", lanes(max_new_tokens=200))
    moments = runner.moments(request)
    while not (moment := next(moments)).race:
        pass
    runner.runs.stop("me")
    passes = pair.target.passes + pair.draft.passes
    last = list(moments)[-1]
    assert pair.target.passes + pair.draft.passes == passes
    assert "stopped" in [lane["state"] for lane in lanes_of(last.race)]
    assert last.text.startswith("Stopped")
    assert text_of(lanes_of(last.race)[0]).startswith(text_of(lanes_of(moment.race)[0]))


def test_closing_the_moments_ends_the_compute(runner, pair):
    moments = runner.moments(runner.request("me", "plain", lanes(max_new_tokens=200)))
    while not next(moments).race:
        pass
    passes = pair.target.passes + pair.draft.passes
    moments.close()
    assert pair.target.passes + pair.draft.passes == passes
    assert runner.runs.count == 0


def test_a_run_that_was_stopped_in_the_queue_leaves_the_last_one_on_the_page(runner, pair):
    request = runner.request("me", "plain", lanes())
    assert runner.runs.stop("me")
    assert list(runner.moments(request)) == []
    assert runner.runs.count == 0
    assert pair.target.passes == 0


def test_a_request_is_run_once_however_often_it_is_handed_in(runner):
    request = runner.request("me", "plain", lanes())
    assert list(runner.moments(request))
    assert list(runner.moments(request)) == []


def test_a_new_run_replaces_the_visitors_last_one_and_nobody_elses(runner):
    mine = runner.moments(runner.request("me", "plain", lanes()))
    yours = runner.moments(runner.request("you", "plain", lanes()))
    next(mine), next(yours)
    runner.request("me", "plain", lanes())
    assert list(mine)[-1].text.startswith("Stopped")
    assert list(yours)[-1].text.startswith("Finished")
    assert runner.runs.count == 1


def test_a_new_run_replaces_one_that_still_waits(runner):
    waiting = runner.request("me", "plain", lanes())
    runner.request("me", "plain", lanes())
    assert list(runner.moments(waiting)) == []
    assert runner.runs.count == 1


def test_a_lane_that_breaks_does_not_break_the_others(runner):
    last = list(runner.moments(runner.request("me", f"plain {FAILING}", lanes())))[-1]
    states = [lane["state"] for lane in lanes_of(last.race)]
    assert states == ["finished", "failed", "failed"]
    assert "RuntimeError: the scripted draft was told to fail" in lanes_of(last.race)[1]["remark"]


def test_an_engine_that_breaks_is_a_sentence_and_keeps_what_was_written(runner, monkeypatch):
    events = runner._engine

    def breaking(*arguments):
        stream = events(*arguments)
        yield next(stream)
        raise OSError("secret")

    monkeypatch.setattr(runner, "_engine", breaking)
    last = list(runner.moments(runner.request("me", "plain", lanes())))[-1]
    assert last.kind == "error"
    assert "secret" not in last.text
    assert len(lanes_of(last.race)[0]["tokens"]) == 1


def test_the_same_seed_gives_the_same_race(runner):
    def written(seed):
        last = list(runner.moments(runner.request("me", "plain", lanes(seed=seed, temperature=2, top_p=1))))[-1]
        return [[token["id"] for token in lane["tokens"]] for lane in lanes_of(last.race)]

    assert written(1) == written(1)
    assert written(1) != written(2)


def test_traces_come_in_the_order_of_the_lanes(runner):
    traces = list(runner.traces(runner.request(None, "plain", lanes())))[-1]
    assert [Trace.model_validate(trace).method for trace in traces] == ["single_token", "speculative", "mtad"]
