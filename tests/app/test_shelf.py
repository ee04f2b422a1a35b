"""Finished runs are kept as they are, within a limit of memory."""

import pytest

from app.shelf import Shelf
from decoding.decode import decode
from decoding.settings import DecodingSettings
from decoding.trace_file import read_traces
from tests.browser.scripted import scripted_pair


@pytest.fixture(scope="module")
def traces():
    pair = scripted_pair(0.0)
    return [decode(method, pair, "plain", DecodingSettings(max_new_tokens=9)) for method in ("single_token", "mtad")]


def test_what_was_kept_comes_back(traces):
    shelf = Shelf()
    assert shelf.put("one", traces)
    assert shelf.put("two", traces[:1])
    assert shelf.traces("one") == tuple(traces)
    assert read_traces(shelf.file("two") or b"") == tuple(traces[:1])
    assert shelf.traces("three") is None


def test_the_run_longest_unused_gives_way(traces):
    probe = Shelf()
    probe.put("any", traces)
    shelf = Shelf(most_bytes=2 * probe.bytes + 10)
    for run in ("first", "second"):
        shelf.put(run, traces)
    assert shelf.file("first")
    shelf.put("third", traces)
    assert [shelf.file(run) is not None for run in ("first", "second", "third")] == [True, False, True]
    assert shelf.bytes <= 2 * probe.bytes + 10


def test_a_run_that_is_too_large_is_not_kept_and_says_so(traces):
    shelf = Shelf(most_bytes=100)
    assert not shelf.put("one", traces)
    assert shelf.traces("one") is None
