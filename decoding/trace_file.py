"""Trace files: one trace, or the traces of a race together. What is read is untrusted."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Discriminator, Field, TypeAdapter, ValidationError

from decoding.trace import Record, Trace

MAX_BYTES = 64 * 1024 * 1024
MAX_TRACES = 8


class TraceFile(Record):
    """The traces of one race, in the order of its lanes."""

    format: Literal["decoding-traces/1"] = "decoding-traces/1"
    traces: tuple[Trace, ...] = Field(min_length=1, max_length=MAX_TRACES)


class InvalidTrace(ValueError):
    """Something that is no trace; the message says where and why."""


_READER: TypeAdapter[Trace | TraceFile] = TypeAdapter(Annotated[Trace | TraceFile, Discriminator("format")])


def read_traces(data: bytes) -> tuple[Trace, ...]:
    """The traces in a file's bytes, one or more.

    Raises:
        InvalidTrace: they hold something else, or something that contradicts itself.
    """
    if len(data) > MAX_BYTES:
        raise InvalidTrace(f"it is larger than {MAX_BYTES >> 20} MB.")
    try:
        read = _READER.validate_json(data)
    except ValidationError as error:
        raise InvalidTrace(_sentence(error)) from error
    return read.traces if isinstance(read, TraceFile) else (read,)


def write_traces(traces: Sequence[Trace]) -> str:
    """A file's text: of one trace the trace itself, of several a `TraceFile`.

    Raises:
        ValueError: there are none, or too many.
    """
    return traces[0].model_dump_json() if len(traces) == 1 else TraceFile(traces=tuple(traces)).model_dump_json()


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"].startswith("union_tag"):
        return 'its "format" is neither "decoding-trace/1" nor "decoding-traces/1".'
    where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("decoding-trace"))[:200]
    what = first["msg"].removeprefix("Value error, ")[:300]
    return f"{where}: {what}." if where else f"{what}."
