"""One generator feeds all lanes: from a request to what the page shows, moment by moment."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import gradio as gr

from app.engine import Advanced, Ended, Engine, Event, Failed
from app.inspector import Inspection
from app.lanes import Data, LaneView, Spelling, lane_views, race_data
from app.models import Models
from app.narration import count
from app.runs import Runs, StoppableRun
from app.settings_form import InvalidSettings
from decoding.lane import Lane
from decoding.language_model import UnsupportedModel
from decoding.pair import ModelPair, VocabularyMismatch
from decoding.prompting import InvalidPrompt, prepare_prompt
from decoding.surface import surface
from decoding.weights import WeightsError

LOG = logging.getLogger(__name__)
RACING = "Racing: the lane that has used the least time goes next."
NOT_BEGUN = "Stopped before it began."
UNEXPECTED = "Something unexpected went wrong on the server. What was written stays here; try again."
UPDATES_PER_SECOND = 10
MAX_PROMPT_CHARACTERS = 200_000  # far beyond any context: refused before it costs time
EXPLAINED = (InvalidPrompt, InvalidSettings, WeightsError, UnsupportedModel, VocabularyMismatch)  # speak for themselves

Kind = Literal["ready", "busy", "done", "error"]


@dataclass(frozen=True)
class Moment:
    """What the page is to show: a status line and, unless they stay as they were, the race and its steps."""

    kind: Kind
    text: str
    race: Data | None = None
    steps: Data | None = None

    @property
    def status(self) -> Data:
        """The status line as data."""
        return {"kind": self.kind, "text": self.text}


@dataclass(frozen=True)
class Request:
    """A race that may be run: everything in it has been checked, but for the prompt's length if the models were not there yet."""

    run: str
    prompt: str
    lanes: tuple[Lane, ...]


class Runner:
    """Runs races on the server's models.

    Args:
        engine: where the compute happens, see `app.engine`.
    """

    def __init__(self, models: Models, runs: Runs, engine: Engine) -> None:
        self.models = models
        self.runs = runs
        self._engine = engine

    def request(self, visitor: str | None, prompt: Any, lanes: tuple[Lane, ...]) -> Request:
        """Check what a visitor asks for; if it can be run, it replaces the visitor's run under way.

        Raises:
            InvalidPrompt: it cannot be run; the message is for the visitor.
        """
        text = prompt if isinstance(prompt, str) else ""
        if len(text) > MAX_PROMPT_CHARACTERS:
            raise InvalidPrompt(f"The prompt is too long: {len(text):,} characters. Shorten it.")
        if not text.strip():
            raise InvalidPrompt("The prompt is empty: type something for the models to continue.")
        if pair := self.models.ready():  # if they are not there yet, the race checks once they are
            check_prompt(pair, text, lanes)
        return Request(self.runs.open(visitor), text, lanes)

    def moments(self, request: Request) -> Iterator[Moment]:
        """The race, moment by moment; none if it was stopped while it waited. Closing the iterator ends the compute."""
        stoppable = self.runs.begin(request.run)
        if stoppable is None:
            return
        try:
            pair_to_come = self.models.wanted()
            yield from self._wait_for_models(pair_to_come, stoppable)
            if stoppable.cancelled:
                yield Moment("done", NOT_BEGUN)
            else:
                yield from self._race(request, pair_to_come.result(), stoppable)
        except EXPLAINED as error:
            yield Moment("error", str(error))
        except Exception:
            LOG.exception("A race could not begin")
            yield Moment("error", UNEXPECTED)
        finally:
            self.runs.close(request.run)

    def traces(self, request: Request) -> Iterator[list[dict[str, Any] | None]]:
        """The trace of each lane, None until it is over; one item at each step, so that it can be closed.

        Raises:
            InvalidPrompt, WeightsError, …: the race cannot be run.
        """
        traces: list[dict[str, Any] | None] = [None] * len(request.lanes)
        try:
            check_prompt(self.models.wanted().result(), request.prompt, request.lanes)
            with closing(self._engine(request.run, request.prompt, request.lanes)) as events:
                for event in events:
                    if isinstance(event, Ended):
                        traces[event.lane] = event.trace
                    yield list(traces)
        finally:
            self.runs.close(request.run)

    def _wait_for_models(self, pair: Future[ModelPair], stoppable: StoppableRun) -> Iterator[Moment]:
        started = time.monotonic()
        while not pair.done() and not stoppable.cancelled:
            seconds = time.monotonic() - started
            yield Moment("busy", f"Loading {self.models.target} and its draft … {seconds:.0f} s")
            wait([pair], timeout=0.5)

    def _race(self, request: Request, pair: ModelPair, stoppable: StoppableRun) -> Iterator[Moment]:
        check_prompt(pair, request.prompt, request.lanes)
        views = lane_views(request.lanes, spelling_of(pair))
        inspection = Inspection(request.run, views, pair.target.eos_ids)
        yield Moment("busy", RACING)
        try:
            with closing(self._engine(request.run, request.prompt, request.lanes)) as events:
                yield from self._follow(request, views, inspection, events, stoppable)
        except gr.Error as error:  # ZeroGPU says in words that there is no GPU to be had
            yield self._broken_off(request, views, str(error.message))
        except Exception:
            LOG.exception("A race broke off")
            yield self._broken_off(request, views, UNEXPECTED)

    def _follow(
        self,
        request: Request,
        views: Sequence[LaneView],
        inspection: Inspection,
        events: Iterator[Event],
        stoppable: StoppableRun,
    ) -> Iterator[Moment]:
        shown = -math.inf
        for event in events:
            take(views, event)
            if stoppable.cancelled:
                break
            if time.monotonic() - shown >= 1 / UPDATES_PER_SECOND:
                yield Moment("busy", RACING, race_data(request.run, views))
                shown = time.monotonic()
        for view in views:
            if not view.over:
                view.end("cancelled")
        yield Moment("done", summary(views), race_data(request.run, views), inspection.data())

    def _broken_off(self, request: Request, views: Sequence[LaneView], sentence: str) -> Moment:
        """What was written stays; before anything was, the last race does."""
        for view in views:
            if not view.over:
                view.fail("Broken off.")
        begun = any(view.steps for view in views)
        return Moment("error", sentence, race_data(request.run, views) if begun else None)


def check_prompt(pair: ModelPair, prompt: str, lanes: Sequence[Lane]) -> None:
    """Prepare the prompt for each lane, for the errors it may raise.

    Raises:
        InvalidPrompt: it cannot be run.
    """
    for lane in lanes:
        prepare_prompt(pair, prompt, lane.settings)


def take(views: Sequence[LaneView], event: Event) -> None:
    """Enter an event of the engine into the lane it is about."""
    view = views[event.lane]
    match event:
        case Advanced():
            view.add(event.step)
        case Ended():
            view.end(event.reason)
        case Failed():
            view.fail(event.sentence)


def summary(views: Sequence[LaneView]) -> str:
    """The end of a race, in a sentence."""
    tokens = sum(len(step.emitted) for view in views for step in view.steps)
    seconds = sum(step.cost.seconds for view in views for step in view.steps)
    ending = "Stopped" if any(view.state == "stopped" for view in views) else "Finished"
    return f"{ending}: {count(tokens, 'token')} in {count(len(views), 'lane')}, {seconds:.1f} s of decoding."


def spelling_of(pair: ModelPair) -> Spelling:
    """How the pair's tokens are written."""
    tokenizer = pair.target.tokenizer
    return Spelling(partial(surface, tokenizer), frozenset(tokenizer.all_special_ids))
