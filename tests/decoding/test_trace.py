"""Traces survive their files unchanged, and files that are no traces are refused, with nothing but a ValidationError."""

import copy
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from decoding.decode import decode
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.trace import MAX_PROMPT_TOKENS, MAX_STEPS, Trace
from tests.decoding.tiny import PROMPT, VOCABULARY, tiny_pair


@pytest.fixture(scope="module")
def pair():
    return tiny_pair("Llama")


@pytest.fixture(scope="module")
def data(pair) -> dict:
    """A trace of MTAD, as its file says it."""
    made = DecodingSettings(max_new_tokens=12, draft_length=3, beam_width=3, stop=("never",))
    return json.loads(decode("mtad", pair, PROMPT, made).model_dump_json())


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("method", METHODS)
def test_a_trace_survives_its_file(pair, method, temperature):
    trace = decode(method, pair, PROMPT, DecodingSettings(max_new_tokens=12, temperature=temperature))
    text = trace.model_dump_json()
    assert Trace.model_validate_json(text) == trace
    assert Trace.model_validate_json(text).model_dump_json() == text
    assert Trace.model_validate(trace.model_dump()) == trace
    assert "Infinity" not in text
    assert "NaN" not in text


def test_minus_infinity_is_null_and_an_unknown_number_too(pair):
    trace = decode("speculative", pair, PROMPT, DecodingSettings(max_new_tokens=20, temperature=0))
    impossible = [(s.index, v.depth - 1) for s in trace.steps for v in s.verdicts if v.log_p == -math.inf]
    assert impossible, "no drafted token was refused"
    again = json.loads(trace.model_dump_json())
    for step, depth in impossible:
        assert again["steps"][step]["verdicts"][depth]["log_p"] is None
        assert again["steps"][step]["draft"]["nodes"][depth]["log_p"] is None
        assert Trace.model_validate(again).steps[step].draft.nodes[depth].log_p == -math.inf
    drafted = decode("mtad", pair, PROMPT, DecodingSettings(max_new_tokens=5)).steps[0].draft
    assert any(not node.scored and node.log_p is None and node.joint_log_p is None for node in drafted.nodes)


def places(value, path=()):
    """Every place in nested JSON."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def put(data, path, value):
    """A copy of the JSON with one place changed."""
    changed = copy.deepcopy(data)
    if not path:
        return value
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


def refused(changed) -> bool:
    try:
        Trace.model_validate_json(json.dumps(changed))
    except ValidationError:
        return True
    return False


def kind(path) -> tuple:
    """A path without its numbers: one per field of the format."""
    return tuple("#" if isinstance(key, int) else key for key in path)


def one_of_each_kind(data, wanted):
    return {kind(path): path for path, value in places(data) if wanted(value)}.values()


def test_the_original_is_accepted(data):
    assert not refused(data)


def test_unknown_keys_are_refused_everywhere(data):
    for path in one_of_each_kind(data, lambda value: isinstance(value, dict)):
        if path != ("tokens",):
            place = data
            for key in path:
                place = place[key]
            assert refused(put(data, path, place | {"surprise": 1})), path


def test_missing_keys_are_refused_in_every_record_of_the_trace(data):
    for path in one_of_each_kind(data, lambda value: isinstance(value, dict)):
        if path in {("tokens",), ("settings",)}:
            continue
        place = data
        for key in path:
            place = place[key]
        for gone in set(place) - {"format"}:
            if place[gone] is not None:
                assert refused(put(data, path, {key: value for key, value in place.items() if key != gone})), (
                    path,
                    gone,
                )


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e300])
def test_numbers_that_are_none_are_refused_everywhere(data, number):
    amounts = {"seconds", "target_seconds", "draft_seconds", "prefill_seconds", "tokens_per_second", "perplexity"}
    amounts |= {"tokens_per_target_pass", "entropy_p", "entropy_q"}
    for path in one_of_each_kind(data, lambda value: isinstance(value, float)):
        if number != 1e300 or path[-1] not in amounts:
            assert refused(put(data, path, number)), path


def test_token_ids_out_of_range_are_refused(data):
    ids = [
        path
        for path in one_of_each_kind(data, lambda v: isinstance(v, int) and not isinstance(v, bool))
        if path[-1] == "token" or "token_ids" in path
    ]
    assert len(ids) >= 6
    for path in ids:
        for wrong in (-1, 2**31, VOCABULARY, VOCABULARY + 1, 1.5, "x", None):
            assert refused(put(data, path, wrong)), (path, wrong)


def change(data, **places):
    for path, value in places.items():
        keys = [int(key) if key.isdigit() else key for key in path.split("__")]
        data = put(data, keys, value(data) if callable(value) else value)
    return data


@pytest.mark.parametrize(
    "places",
    [
        {"format": "decoding-trace/2"},
        {"method": "../../etc"},
        {"steps__0__draft__nodes__0__parent": 0},
        {"steps__0__draft__nodes__0__parent": 1},
        {"steps__0__draft__nodes__0__parent": 10_000},
        {"steps__0__draft__nodes__0__depth": 2},
        {"steps__0__draft__chosen": [0, 0]},
        {"steps__0__draft__chosen": [10_000]},
        {"steps__0__draft__chosen": lambda data: data["steps"][0]["draft"]["chosen"][::-1]},
        {"steps__0__draft": None},
        {"steps__0__verdicts": lambda data: data["steps"][0]["verdicts"][::-1]},
        {"steps__0__verdicts": lambda data: data["steps"][0]["verdicts"][:1]},
        {"steps__0__choices": []},
        {"steps__0__index": 1},
        {"steps__1__start": 0},
        {"steps": lambda data: data["steps"][::-1]},
        {"steps": lambda data: data["steps"][1:]},
        {"result__token_ids": lambda data: data["result"]["token_ids"][:-1]},
        {"result__finish_reason": "bored"},
        {"tokens": {}},
        {"prompt__token_ids": []},
        {"prompt__token_ids": [1] * (MAX_PROMPT_TOKENS + 1)},
        {"prompt__text": "x" * 1_000_001},
        {"steps": lambda data: data["steps"][:1] * (MAX_STEPS + 1)},
        {"settings__max_new_tokens": 10**9},
        {"settings__seed": -1},
        {"target__vocabulary": 0},
        {"steps__0__emitted__0__origin": "guessed"},
        {"steps__0__emitted__0__log_p": 0.5},
        {"steps__0__verdicts__0__depth": 65},
        {"steps__0__cost__target_passes": -1},
        {"steps__0__cost__target_passes": 2**53},
        {"steps__0__verdicts__0__uniform": 1.0},
        {"result__metrics__acceptance_rate": 1.5},
    ],
    ids=lambda places: " ".join(places),
)
def test_contradictions_and_excess_are_refused(data, places):
    assert refused(change(data, **places))


def test_a_node_that_was_not_scored_has_no_p(data):
    nodes = data["steps"][0]["draft"]["nodes"]
    index = next(i for i, node in enumerate(nodes) if not node["scored"])
    assert refused(put(data, ("steps", 0, "draft", "nodes", index, "log_p"), -1.0))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JUNK)
def test_junk_is_refused_with_a_validation_error(junk):
    assert refused(junk)


@given(st.binary(max_size=60) | st.text(max_size=60) | st.just("[" * 5000))
def test_bytes_that_are_no_json_are_refused_with_a_validation_error(junk):
    with pytest.raises(ValidationError):
        Trace.model_validate_json(junk)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=st.data())
def test_junk_in_a_trace_is_refused_or_harmless(data, source):
    path = source.draw(st.sampled_from(list(one_of_each_kind(data, lambda value: True))))
    changed = put(data, path, source.draw(JUNK))
    if not refused(changed):  # then it is a trace like any other
        text = Trace.model_validate_json(json.dumps(changed)).model_dump_json()
        assert Trace.model_validate_json(text).model_dump_json() == text
