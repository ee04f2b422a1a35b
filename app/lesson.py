"""The lesson: a walk through recorded runs, a few stops long."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from app.examples import recording, run_id
from app.places import SIGHTS, find
from app.telling_runs import fill
from decoding.trace import Record

FILE = Path(__file__).parent.parent / "assets" / "lessons" / "lesson.json"
FEWEST_STOPS, MOST_STOPS = 6, 10

Part = Literal["lanes", "draft", "verdict", "next", "what-if", "log-probability", "passes", "tokens-per-pass"]


class Stop(Record):
    """A stop as it is planned.

    Attributes:
        text: names what it tells of the run, see `app.telling_runs`.
        example, sight: which recorded run it shows, and which of its steps, see `app.places`.
        part: of the page, that it speaks of.
    """

    title: str
    text: str
    example: str
    sight: Annotated[str, Field(pattern="|".join(SIGHTS))]
    part: Part


@cache
def stops() -> tuple[Stop, ...]:
    """All stops, first to last."""
    reader = TypeAdapter(Annotated[tuple[Stop, ...], Field(min_length=FEWEST_STOPS, max_length=MOST_STOPS)])
    return reader.validate_json(FILE.read_bytes())


@cache
def lesson_text() -> str:
    """The lesson as the page is given it, JSON: every stop with its text filled in and the place that it shows."""
    return json.dumps([_shown(stop) for stop in stops()], ensure_ascii=False)


def _shown(stop: Stop) -> dict[str, Any]:
    """A stop as the page shows it.

    Raises:
        LookupError: its sight does not occur in its example.
    """
    traces = recording(stop.example).traces
    place = find(stop.sight, traces)
    if place is None:
        raise LookupError(f"'{stop.title}': there is no '{stop.sight}' in '{stop.example}'.")
    return {
        "title": stop.title,
        "text": fill(stop.text, traces, place),
        "example": stop.example,
        "run": run_id(stop.example),
        "lane": place.lane,
        "step": place.step,
        "token": place.token,
        "part": stop.part,
    }
