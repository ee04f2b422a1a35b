"""What visitors ask for: checked in words before it costs anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from app.settings_form import InvalidSettings
from app.shown import Presets, preset_of
from decoding.lane import MOST_LANES, Lane
from decoding.pair import ModelPair
from decoding.prompting import InvalidPrompt, check_forced, prepare_prompt
from decoding.trace import Trace

MAX_PROMPT_CHARACTERS = 200_000  # far beyond any context: refused before it costs time

Pairs = Mapping[str, ModelPair]


class _Place(BaseModel):
    run: str = Field(max_length=100)
    lane: int
    position: int
    token: int

    def as_tuple(self) -> tuple[str, int, int, int]:
        return self.run, self.lane, self.position, self.token


@dataclass(frozen=True)
class Request:
    """A race to be run.

    Attributes:
        run: its id.
        beside: finished lanes that are shown with it.
        origin: which of these it branches off, if it does.
        forced: the tokens its texts begin with.
    """

    run: str
    prompt: str
    lanes: tuple[Lane, ...]
    beside: tuple[Trace, ...] = field(default=(), hash=False)  # gradio hashes what a session holds
    origin: int | None = None
    forced: tuple[int, ...] = ()


def race_of(run: str, prompt: Any, lanes: tuple[Lane, ...]) -> Request:
    """A race of its own.

    Raises:
        InvalidPrompt: there is no prompt, or far too much of one.
    """
    text = prompt if isinstance(prompt, str) else ""
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise InvalidPrompt(f"The prompt is too long: {len(text):,} characters. Shorten it.")
    if not text.strip():
        raise InvalidPrompt("The prompt is empty: type something for the models to continue.")
    return Request(run, text, lanes)


def branch_of(run: str, traces: Sequence[Trace], presets: Presets, lane: int, position: int, token: int) -> Request:
    """A lane that goes on from a lane's text as it was before a position, with another token there.

    Where there is no room for one more lane, the last one that is not its origin gives way.

    Raises:
        InvalidSettings: there is no such place, or the lane's models are not known here.
    """
    if not 0 <= lane < len(traces) or not 0 <= position < len(traces[lane].result.token_ids):
        raise InvalidSettings("There is no such token to branch at.")
    parent = traces[lane]
    preset = preset_of(parent, presets)
    if preset is None:
        raise InvalidSettings(f"{parent.target.name} is not offered here: this run can be looked at, not continued.")
    beside, origin = list(traces), lane
    if len(beside) >= MOST_LANES:
        gone = max(i for i in range(len(beside)) if i != lane)
        del beside[gone]
        origin -= gone < lane
    child = Lane(method=parent.method, preset=preset, settings=parent.settings)
    forced = (*parent.result.token_ids[:position], token)
    return Request(run, parent.prompt.text, (child,), tuple(beside), origin, forced)


def read_place(place: Any) -> tuple[str, int, int, int]:
    """Run, lane, position and token of a branch, from what the page sends.

    Raises:
        InvalidSettings: it is something else.
    """
    try:
        return _Place.model_validate(place).as_tuple()
    except ValidationError as error:
        raise InvalidSettings("There is no such token to branch at.") from error


def check_request(request: Request, pairs: Pairs) -> None:
    """Check a request against those of its pairs that are loaded.

    Raises:
        InvalidPrompt: it cannot be run on them.
        InvalidSettings: it branches off a run of other models.
    """
    for lane in request.lanes:
        pair = pairs.get(lane.preset)
        if pair is None:
            continue
        prepare_prompt(pair, request.prompt, lane.settings)
        check_forced(pair, request.forced, lane.settings)
        if request.origin is not None:
            check_same_prompt(request.beside[request.origin], pair)


def check_same_prompt(trace: Trace, pair: ModelPair) -> None:
    """Check that a pair splits a run's prompt as the run did: its name alone does not make it the same.

    Raises:
        InvalidPrompt: it cannot be run on the pair.
        InvalidSettings: it is split otherwise.
    """
    if prepare_prompt(pair, trace.prompt.text, trace.settings).token_ids != trace.prompt.token_ids:
        raise InvalidSettings("The models here split this run's prompt otherwise: it cannot be continued with them.")
