"""The compute of a race, as a stream of events: the one part that runs on the GPU."""

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from app.models import Models
from app.runs import Runs
from app.surroundings import on_gpu
from decoding.decode import Decoding
from decoding.lane import Lane
from decoding.race import race
from decoding.trace import FinishReason, Step

LOG = logging.getLogger(__name__)
SECONDS_PER_TOKEN = 0.06  # of one lane on a shared GPU, generously
SECONDS_TO_START = 10


@dataclass(frozen=True)
class Advanced:
    """A lane made a step."""

    lane: int
    step: Step


@dataclass(frozen=True)
class Ended:
    """A lane's run is over; `trace` is its record as JSON data."""

    lane: int
    reason: FinishReason
    trace: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """A lane broke; the others go on. `trace` holds what it had done."""

    lane: int
    sentence: str
    trace: dict[str, Any]


Event = Advanced | Ended | Failed
Engine = Callable[[str, str, Sequence[Lane], Sequence[int]], Generator[Event]]


class GuardedDecoding(Decoding):
    """A decoding whose failure ends it alone, and is kept."""

    failure: Exception | None = None

    def __next__(self) -> Step:
        try:
            return super().__next__()
        except StopIteration:
            raise
        except Exception as error:
            LOG.exception("A lane broke off")
            self.failure = error
            raise StopIteration from None


def make_engine(models: Models, runs: Runs) -> Engine:
    """A function from (run id, prompt, lanes, tokens that all texts begin with) to the events of that race.

    Raises (the function, before its first event):
        InvalidPrompt: the prompt or these tokens cannot be run on these models with these settings.
    """

    @on_gpu(duration=_most_seconds)
    def engine(run: str, prompt: str, lanes: Sequence[Lane], forced: Sequence[int]) -> Generator[Event]:
        pairs = models.wanted({lane.preset for lane in lanes})
        check = runs.cancellation(run).check
        decodings = [
            GuardedDecoding(lane.method, pairs[lane.preset].result(), prompt, lane.settings, check, forced)
            for lane in lanes
        ]
        yield from _events(decodings)

    return engine


def _events(decodings: Sequence[GuardedDecoding]) -> Generator[Event]:
    going = dict(enumerate(decodings))
    for index, step in race(decodings):
        yield Advanced(index, step)
        over = [i for i, decoding in going.items() if decoding.finished or decoding.failure]
        yield from (_end(i, going.pop(i)) for i in over)
    yield from (_end(i, decoding) for i, decoding in going.items())


def _end(index: int, decoding: GuardedDecoding) -> Event:
    trace = decoding.trace()
    data = trace.model_dump(mode="json")
    if decoding.failure:
        return Failed(index, describe_failure(decoding.failure), data)
    return Ended(index, trace.result.finish_reason, data)


def describe_failure(error: Exception) -> str:
    """What went wrong, in one sentence without a traceback."""
    if type(error).__name__ == "OutOfMemoryError":
        return "This lane ran out of GPU memory: shorten the prompt or ask for fewer new tokens or beams."
    first_line = (str(error).strip().splitlines() or [""])[0][:200]
    return (
        f"This lane broke off with an unexpected error: {type(error).__name__}{': ' if first_line else ''}{first_line}."
    )


def _most_seconds(run: str, prompt: str, lanes: Sequence[Lane], forced: Sequence[int]) -> int:
    tokens = sum(lane.settings.max_new_tokens for lane in lanes)
    return min(120, SECONDS_TO_START + int(SECONDS_PER_TOKEN * tokens))
