"""The race is fair, can be stopped before any pass, and no lane knows of the others."""

import math
from dataclasses import dataclass, field

import pytest

from decoding.decode import Decoding
from decoding.race import Cancellation, race
from decoding.settings import DecodingSettings
from decoding.trace import Trace
from tests.decoding.tiny import PROMPT, tiny_pair

METHODS = ("single_token", "speculative", "mtad")


@dataclass
class Paced:
    """A lane whose steps take known times."""

    durations: list[float]
    done: int = 0
    seconds: float = 0.0
    before: list[float] = field(default_factory=list)

    def __iter__(self):
        return self

    def __next__(self) -> int:
        if self.done == len(self.durations):
            raise StopIteration
        self.before.append(self.seconds)
        self.seconds += self.durations[self.done]
        self.done += 1
        return self.done


def test_the_lane_that_used_least_goes_next():
    lanes = [Paced([3.0] * 4), Paced([1.0] * 9), Paced([0.5, 4.0, 0.25])]
    order = []
    for index, _ in race(lanes):
        order.append(index)
        running = [lane for lane in lanes if lane.done < len(lane.durations) or lane is lanes[index]]
        assert lanes[index].before[-1] <= min(lane.seconds for lane in running)
    assert [order.count(i) for i in range(3)] == [4, 9, 3]
    assert order[:7] == [0, 1, 2, 2, 1, 1, 0]  # equals: the first


def test_a_lane_that_has_ended_leaves_the_others_running():
    assert [index for index, _ in race([Paced([]), Paced([1.0, 1.0])])] == [1, 1]
    assert list(race([])) == []


def timeless(trace: Trace) -> dict:
    data = trace.model_dump(exclude={"steps": {"__all__": {"cost"}}})
    data["result"].pop("metrics")
    return data


def test_a_trace_is_the_same_whoever_else_runs():
    pair, settings = tiny_pair("Llama"), DecodingSettings(max_new_tokens=16, seed=4)
    together = [Decoding(method, pair, PROMPT, settings) for method in METHODS]
    for _ in race(together):
        pass
    for method, lane in zip(METHODS, together, strict=True):
        alone = Decoding(method, pair, PROMPT, settings)
        for _ in alone:
            pass
        assert timeless(alone.trace()) == timeless(lane.trace())
    other = Decoding("mtad", pair, PROMPT, settings.model_copy(update={"seed": 5}))
    for _ in other:
        pass
    assert timeless(other.trace()) != timeless(together[2].trace())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("passes", [0, 1, 2, 3, 4, 9])
def test_cancelling_stops_before_the_next_pass_and_leaves_a_valid_trace(method, passes):
    cancellation, begun = Cancellation(), []

    def before_pass() -> None:
        if len(begun) == passes:
            cancellation.cancel()
        cancellation.check()
        begun.append(None)

    decoding = Decoding(method, tiny_pair("Llama"), PROMPT, DecodingSettings(max_new_tokens=30), before_pass)
    steps = list(decoding)
    assert len(begun) == passes
    assert next(decoding, None) is None
    trace = Trace.model_validate_json(decoding.trace().model_dump_json())
    assert trace.result.finish_reason == "cancelled"
    assert not decoding.finished
    assert trace.steps == tuple(steps)
    assert trace.result.token_ids == tuple(token.token for step in steps for token in step.emitted)


def test_cancelling_one_race_ends_all_its_lanes():
    pair, cancellation = tiny_pair("Llama"), Cancellation()
    lanes = [Decoding(method, pair, PROMPT, DecodingSettings(), cancellation.check) for method in METHODS]
    steps = []
    for index, step in race(lanes):
        steps.append((index, step))
        if len(steps) == 4:
            cancellation.cancel()
    assert len(steps) == 4
    assert [lane.trace().result.finish_reason for lane in lanes] == ["cancelled"] * 3


def test_the_seconds_of_a_lane_are_those_of_its_steps():
    decoding = Decoding("mtad", tiny_pair("Llama"), PROMPT, DecodingSettings(max_new_tokens=8))
    assert decoding.seconds == 0
    steps = list(decoding)
    assert math.isclose(decoding.seconds, sum(step.cost.seconds for step in steps))
    assert decoding.metrics().prefill_seconds > 0
