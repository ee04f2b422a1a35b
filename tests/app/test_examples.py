"""The recorded examples: each is a run of its prompt, shows what it promises, and says only what is in it."""

import gzip

import pytest

from app.examples import FOLDER, examples, make_recording, read_name, recording
from decoding.lane import DEFAULT_METHODS
from decoding.pair import ModelPair
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.replay import replay
from decoding.trace_file import InvalidTrace, read_traces
from tests.app.told import decimals, figures_of

NAMES = list(examples())
MOST_BYTES = 3_000_000
MOST_TOKENS = 64


def test_there_are_enough_and_each_has_a_title_of_its_own():
    assert len(NAMES) >= 8
    assert len({example.title for example in examples().values()}) == len(NAMES)
    assert all(example.title.strip() and 10 < len(example.prompt) < 1000 for example in examples().values())


def test_there_is_a_file_for_each_and_they_are_small():
    files = sorted(FOLDER.glob("*.json.gz"))
    assert files == sorted(examples()[name].file for name in NAMES)
    assert sum(file.stat().st_size for file in files) < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_the_recording_is_of_the_example(name: str):
    example, traces = examples()[name], recording(name).traces
    assert [trace.method for trace in traces] == list(DEFAULT_METHODS)
    for trace in traces:
        assert (trace.prompt.text, trace.settings) == (example.prompt, example.settings)
        assert len(trace.result.token_ids) <= MOST_TOKENS
        assert trace.result.finish_reason in {"eos", "length"}
        assert (trace.target.name, trace.settings.max_new_tokens <= MOST_TOKENS) == (
            PRESETS[DEFAULT_PRESET].target,
            True,
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_sentence_has_only_figures_of_the_run(name: str):
    shown = recording(name)
    assert 30 < len(shown.look_at) < 400
    assert decimals(shown.look_at) <= figures_of(shown.traces, shown.place)


def test_the_target_does_not_know_that_17_and_25_are_42():
    assert "42" not in recording("arithmetic").traces[0].result.text


def test_a_run_without_the_promised_sight_is_refused():
    shown = recording(NAMES[0])
    example = shown.example.model_copy(update={"sight": "rescue"})
    with pytest.raises(InvalidTrace, match="choose another seed"):
        make_recording(example, shown.traces[:1])


@pytest.mark.parametrize("sent", [None, [], {}, {"example": 3}, {"example": "../secret"}, {"example": ["sky"]}])
def test_what_is_no_example_is_refused(sent):
    with pytest.raises(InvalidTrace, match="no such example"):
        read_name(sent)


def test_files_are_trace_files_that_anybody_can_open():
    data = gzip.decompress(examples()[NAMES[0]].file.read_bytes())
    assert len(read_traces(data)) == len(DEFAULT_METHODS)


@pytest.mark.slow
def test_an_example_is_reproduced_by_the_real_pair():
    preset = PRESETS[DEFAULT_PRESET]
    trace = min((trace for name in NAMES for trace in recording(name).traces[1:]), key=lambda trace: len(trace.steps))
    pair = ModelPair.load(preset.target, preset.draft, device="cpu", dtype=trace.target.dtype)
    assert set(replay(trace, pair)) == {None}
