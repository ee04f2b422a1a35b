"""Trace files: what was written comes back, and nothing else comes in."""

import json

import pytest

from decoding.decode import decode
from decoding.settings import DecodingSettings
from decoding.trace_file import MAX_TRACES, InvalidTrace, read_traces, write_traces
from tests.decoding.tiny import PROMPT, tiny_pair


@pytest.fixture(scope="module")
def traces():
    pair = tiny_pair("Llama")
    return [decode(method, pair, PROMPT, DecodingSettings(max_new_tokens=6)) for method in ("single_token", "mtad")]


def test_one_trace_is_a_trace_and_several_are_a_file_of_traces(traces):
    assert json.loads(write_traces(traces[:1]))["format"] == "decoding-trace/1"
    assert json.loads(write_traces(traces))["format"] == "decoding-traces/1"
    assert read_traces(write_traces(traces[1:]).encode()) == (traces[1],)
    assert read_traces(write_traces(traces).encode()) == tuple(traces)
    with pytest.raises(ValueError, match="at most"):
        write_traces(traces * MAX_TRACES)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "Invalid JSON: EOF"),
        (b"[]", "Input should be an object."),
        (b"{}", 'its "format" is neither'),
        (b'{"format": "other/1"}', 'its "format" is neither'),
        (b'{"format": "decoding-trace/1"}', "method: Field required."),
        (b'{"format": "decoding-traces/1", "traces": []}', "traces: Tuple should have at least 1 item"),
        (b"[" * 10**6, "Invalid JSON: recursion limit exceeded"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(data, sentence):
    with pytest.raises(InvalidTrace) as error:
        read_traces(data)
    assert str(error.value).startswith(sentence)
    assert str(error.value).endswith(".")


def test_a_contradiction_is_named_with_its_place(traces):
    data = json.loads(write_traces(traces))
    data["traces"][1]["result"]["token_ids"][0] += 1
    with pytest.raises(InvalidTrace, match=r"^traces\.1: the steps do not add up to the result's token ids\.$"):
        read_traces(json.dumps(data).encode())
