"""The examples: prompts that teach something, and what was recorded of them on the default pair (`python -m app.record`)."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.places import Place, find
from app.telling_runs import fill
from decoding.settings import DecodingSettings
from decoding.trace import Record, Trace
from decoding.trace_file import InvalidTrace, read_traces

FOLDER = Path(__file__).parent.parent / "assets" / "examples"
MOST_KEPT = 4  # examples in memory


class Example(Record):
    """An example as it is planned.

    Attributes:
        name: of its file.
        sight: what is worth seeing in it, a key of `app.places.SIGHTS`.
        look_at: says so; names what it tells of the run, see `app.telling_runs`.
    """

    name: str
    title: str
    prompt: str
    settings: DecodingSettings
    sight: str
    look_at: str

    @property
    def file(self) -> Path:
        """Where its recorded run is: traces, compressed."""
        return FOLDER / f"{self.name}.json.gz"


@dataclass(frozen=True)
class Recording:
    """An example with its recorded run: where to look, and a sentence on what to see there."""

    example: Example
    traces: tuple[Trace, ...]
    place: Place
    look_at: str


@cache
def examples() -> dict[str, Example]:
    """By name, in the order they are offered."""
    text = (FOLDER / "examples.json").read_bytes()
    return {example.name: example for example in TypeAdapter(tuple[Example, ...]).validate_json(text)}


def read_name(data: Any) -> str:
    """The name of an example, out of what the page sent.

    Raises:
        InvalidTrace: there is none.
    """
    name = data.get("example") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in examples():
        raise InvalidTrace("There is no such example.")
    return name


def run_id(name: str) -> str:
    """Under which the page knows an example's recorded run."""
    return f"example-{name}"


@lru_cache(MOST_KEPT)
def recording(name: str) -> Recording:
    """The recorded run of an example.

    Raises:
        KeyError: there is no such example.
        InvalidTrace: its file is not there or is no recording of it.
    """
    example = examples()[name]
    try:
        data = gzip.decompress(example.file.read_bytes())
    except OSError as error:
        raise InvalidTrace(f"{example.file.name} cannot be read: {error}") from error
    return make_recording(example, read_traces(data))


def make_recording(example: Example, traces: Sequence[Trace]) -> Recording:
    """An example with traces of it.

    Raises:
        InvalidTrace: what is worth seeing does not occur in them.
    """
    place = find(example.sight, traces)
    if place is None:
        raise InvalidTrace(f"'{example.name}' has no '{example.sight}' in it: choose another seed.")
    return Recording(example, tuple(traces), place, fill(example.look_at, traces, place))
