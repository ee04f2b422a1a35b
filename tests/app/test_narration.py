"""The sentences, with numbers that can be checked by hand."""

import pytest

from app import narration
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from tests.app.steps import make_step

SINGLE = [make_step(emitted=[(1, "sampled")], target=0.9, seconds=1.0)] * 4


def test_a_slower_method_is_called_slower_and_the_reason_adds_up():
    steps = [make_step(emitted=[(1, "accepted")] * 2, target=1.5, draft=0.8, draft_passes=4, seconds=2.5)] * 2
    speed = narration.speed(steps, SINGLE)
    assert speed.verdict == "0.80× the speed of single-token sampling."
    assert speed.reason == (
        "A step writes 2 tokens and costs as much as 2.50 single-token steps: 1.50 for the target's pass, "
        "0.80 for 4 draft passes, 0.20 for rules and records."
    )


def test_a_faster_method_is_called_faster():
    steps = [make_step(emitted=[(1, "accepted")] * 5, target=1.2, draft=0.3, draft_passes=4)]
    assert narration.speed(steps, SINGLE).verdict == "3.33× the speed of single-token sampling."


@pytest.mark.parametrize("steps", [[], [make_step(target=0.0)]])
def test_nothing_is_said_without_measurements(steps):
    assert narration.speed(steps, SINGLE) is None
    assert narration.speed(SINGLE, steps) is None
    assert narration.yardstick(steps) is None


def test_the_yardstick_gives_its_own_time():
    assert narration.yardstick(SINGLE).reason == "1000 ms per token, one target pass each."


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_described(method):
    assert method in narration.HOW
    assert "{" not in narration.how(method, DecodingSettings())


def test_settings_are_in_the_description():
    sentence = narration.how("mtad", DecodingSettings(draft_length=1, beam_width=8, threshold=0.25))
    assert (
        sentence
        == "The draft's 8 beams propose a block of 1 token; the longest part whose joint P/Q exceeds 0.25 is kept."
    )


def test_every_finish_reason_has_words():
    settings = DecodingSettings(max_new_tokens=1)
    assert "1 token is" in narration.finish("length", settings)
    assert len({narration.finish(reason, settings) for reason in ("eos", "stop", "length", "cancelled")}) == 4
