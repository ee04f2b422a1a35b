"""Finished runs, kept for a while: what downloads, reports and branches are made of."""

import zlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from decoding.trace import Trace
from decoding.trace_file import read_traces, write_traces


class Shelf:
    """The latest runs by id, compressed. The one longest unused gives way when the memory is used up.

    Args:
        most_bytes: how much memory the runs may take; a single run that is larger is not kept.
    """

    def __init__(self, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._runs: OrderedDict[str, bytes] = OrderedDict()

    def put(self, run: str, traces: Sequence[Trace]) -> bool:
        """Keep a run's traces, at least one; whether they could be kept."""
        packed = zlib.compress(write_traces(traces).encode(), level=1)
        with self._lock:
            self._runs.pop(run, None)
            while self._runs and self.bytes + len(packed) > self._most_bytes:
                self._runs.popitem(last=False)
            if fits := len(packed) <= self._most_bytes:
                self._runs[run] = packed
        return fits

    def file(self, run: str) -> bytes | None:
        """A run as a trace file; None if it is not kept any more."""
        with self._lock:
            if run not in self._runs:
                return None
            self._runs.move_to_end(run)
            packed = self._runs[run]
        return zlib.decompress(packed)

    def traces(self, run: str) -> tuple[Trace, ...] | None:
        """A run's traces, in the order of its lanes; None if it is not kept any more."""
        file = self.file(run)
        return None if file is None else read_traces(file)

    @property
    def bytes(self) -> int:
        """How much memory the runs take."""
        return sum(map(len, self._runs.values()))
