"""A link restores a race, and nothing else is read into it."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.permalink import LONGEST, from_query, to_query
from app.settings_form import InvalidSettings, read_lanes
from decoding.settings import DecodingSettings


def restored(query: str):
    linked = from_query(parse_qsl(query, keep_blank_values=True))
    assert linked
    return linked.prompt, read_lanes(linked.lanes, linked.settings, linked.preset)


@given(
    prompt=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
    seed=st.integers(0, 2**53 - 1),
    thresholds=st.lists(st.floats(0.01, 1), min_size=2, max_size=4),
    stop=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), max_size=3),
)
def test_a_race_comes_back_as_it_was(prompt, seed, thresholds, stop):
    settings = DecodingSettings(seed=seed, stop=tuple(stop), chat=False)
    lanes = read_lanes([f"mtad,threshold={value!r},preset=gpt2-xl" for value in thresholds], settings)
    query = to_query(prompt, lanes)
    assert query is None or restored(query) == (prompt, lanes)


def test_a_short_race_has_a_short_link():
    lanes = read_lanes(None, DecodingSettings(seed=7))
    query = to_query("Why?", lanes)
    assert query == "prompt=Why%3F&pair=smollm2-135m&seed=7&lane=single_token&lane=speculative&lane=mtad"


def test_what_makes_no_link():
    lanes = read_lanes(None, DecodingSettings())
    assert to_query("x" * LONGEST, lanes) is None
    assert to_query("\ud83d", lanes) is None
    other = read_lanes(None, DecodingSettings(stop=("END",)))
    assert to_query("Why?", [*lanes[:2], other[2]]) is None


def test_an_address_without_a_prompt_is_none_of_ours():
    assert from_query([("__theme", "dark"), ("seed", "x")]) is None


def test_fields_that_are_not_ours_are_left_alone():
    linked = from_query([("prompt", "Why?"), ("__theme", "dark"), ("colour", "red")])
    assert linked
    assert linked.settings == DecodingSettings()
    assert linked.lanes == ("single_token", "speculative", "mtad")


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (("seed", "x"), "Seed: x does not fit"),
        (("threshold", "9"), "τ · threshold: 9 does not fit"),
        (("pair", "huge"), "The pair 'huge' is not offered here"),
        (("lane", "mtad"), "2 to 4 lanes, not 1"),
    ],
)
def test_a_broken_link_is_refused_in_words(field, sentence):
    with pytest.raises(InvalidSettings, match=sentence):
        from_query([("prompt", "Why?"), field])
