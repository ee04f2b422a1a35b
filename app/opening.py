"""Opening trace files: also those made by the command line, and without any model."""

import uuid
from collections.abc import Sequence
from pathlib import Path

from app.narration import count
from decoding.lane import MOST_LANES
from decoding.trace import Trace
from decoding.trace_file import MAX_BYTES, InvalidTrace, read_traces

NOT_WHILE_RACING = "A race is going on: stop it or let it end, then open the file."


def open_files(paths: Sequence[str]) -> tuple[str, tuple[Trace, ...]]:
    """A new run's id and the traces in some uploaded files, which are removed.

    Raises:
        InvalidTrace: one of the files is no trace, or they hold too many.
    """
    traces: list[Trace] = []
    try:
        for path in map(Path, paths):
            traces += _read(path)
            if len(traces) > MOST_LANES:
                raise InvalidTrace(f"Up to {MOST_LANES} traces can be shown at once: choose fewer files.")
    finally:
        for path in map(Path, paths):
            path.unlink(missing_ok=True)
    if not traces:
        raise InvalidTrace("No file was chosen.")
    return uuid.uuid4().hex, tuple(traces)


def _read(path: Path) -> tuple[Trace, ...]:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    try:
        return read_traces(data)
    except InvalidTrace as error:
        raise InvalidTrace(f"{path.name[:80]} is not a trace file: {error}") from error


def opened_sentence(traces: Sequence[Trace]) -> str:
    """What was opened."""
    names = ", ".join(sorted({trace.target.name for trace in traces}))
    return f"Opened: {count(len(traces), 'recorded lane')} of {names[:200]}, nothing was computed."
