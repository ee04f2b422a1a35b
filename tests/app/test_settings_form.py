"""The form of the settings."""

import pytest

from app.settings_form import LABELS, InvalidSettings, bounds, default, read_lanes, read_settings
from decoding.settings import DecodingSettings


def test_the_form_has_every_setting_and_no_other():
    assert set(LABELS) == set(DecodingSettings.model_fields)


@pytest.mark.parametrize("name", ["draft_length", "beam_width", "threshold", "top_k", "top_p", "max_new_tokens"])
def test_the_bounds_are_those_of_the_settings(name):
    limits = bounds(name, step=0.01 if isinstance(default(name), float) else 1)
    for value in (limits.least, limits.most):
        read_settings({name: value})
    for value in (limits.least - 0.01, limits.most + 1):
        with pytest.raises(InvalidSettings):
            read_settings({name: value})


def test_stop_strings_are_lines():
    assert read_settings({"stop": "END\n\n.\n"}).stop == ("END", ".")
    assert read_settings({"stop": None}).stop == ()
    assert read_settings({"stop": ["a\nb"]}).stop == ("a\nb",)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"threshold": 3}, "τ · threshold: 3 does not fit. It should be less than or equal to 1."),
        ({"top_k": None}, "Top-k: a value is missing."),
        ({"seed": "x"}, "Seed: x does not fit. It should be a valid integer, unable to parse string as an integer."),
        ({"colour": 1}, "There is no setting named 'colour'."),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(values, sentence):
    with pytest.raises(InvalidSettings) as error:
        read_settings(values)
    assert str(error.value) == sentence


def test_lanes_are_two_to_four_known_methods():
    settings = DecodingSettings(seed=3)
    assert [lane.method for lane in read_lanes(None, settings)] == ["single_token", "speculative", "mtad"]
    lanes = read_lanes(["mtad", "mtad,threshold=0.1,preset=gpt2-xl"], settings)
    assert [lane.settings.seed for lane in lanes] == [3, 3]
    assert [lane.settings.threshold for lane in lanes] == [settings.threshold, 0.1]
    assert [lane.preset for lane in lanes] == ["smollm2-135m", "gpt2-xl"]


@pytest.mark.parametrize(
    ("described", "sentence"),
    [
        (["mtad", "magic"], "Lane 2. There is no method 'magic'."),
        (["mtad,preset=huge", "mtad"], "Lane 1. There is no pair 'huge'."),
        (["mtad,colour=1", "mtad"], "Lane 1. There is no setting named 'colour'."),
        (["mtad", "mtad,threshold=7"], "Lane 2. τ · threshold: 7 does not fit."),
        (["mtad", 5], "Lane 2 is not a text"),
        (["mtad"], "A race has 2 to 4 lanes, not 1."),
        (["mtad"] * 5, "A race has 2 to 4 lanes, not 5."),
    ],
)
def test_lanes_that_do_not_fit_are_said_in_one_sentence(described, sentence):
    with pytest.raises(InvalidSettings) as error:
        read_lanes(described, DecodingSettings())
    assert str(error.value).startswith(sentence)
