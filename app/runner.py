"""One generator feeds all lanes: from a request to what the page shows, moment by moment."""

import logging
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import gradio as gr

from app.contest import Contest
from app.engine import Ended, Engine, Event
from app.explained import EXPLAINED, GONE, UNEXPECTED
from app.lanes import Data
from app.models import Models
from app.requests import Pairs, Request, branch_of, check_request, race_of
from app.runs import Runs, StoppableRun
from app.settings_form import InvalidSettings
from app.shelf import Shelf
from app.shown import shown
from app.surroundings import ZERO_GPU
from decoding.lane import Lane
from decoding.pair import ModelPair
from decoding.trace import Trace

LOG = logging.getLogger(__name__)
RACING = "Racing: the lane that has used the least time goes next."
NOT_BEGUN = "Stopped before it began."
UPDATES_PER_SECOND = 10

Kind = Literal["ready", "busy", "done", "error"]


@dataclass(frozen=True)
class Moment:
    """What the page is to show: a status line and, unless they stay as they were, the race, its steps, the views of it, and how to keep it."""

    kind: Kind
    text: str
    race: Data | None = None
    steps: Data | None = None
    overview: Data | None = None
    keeping: Data | None = None

    @property
    def status(self) -> Data:
        """The status line as data."""
        return {"kind": self.kind, "text": self.text}

    @property
    def parts(self) -> tuple[Data | None, ...]:
        """What the parts of the page show, in their order there; None where it stays."""
        return self.race, self.steps, self.overview, self.keeping


class Runner:
    """Runs races on the server's models.

    Args:
        engine: where the compute happens, see `app.engine`.
    """

    def __init__(self, models: Models, runs: Runs, engine: Engine) -> None:
        self.models = models
        self.runs = runs
        self.shelf = Shelf()
        self._engine = engine

    def request(self, visitor: str | None, prompt: Any, lanes: tuple[Lane, ...]) -> Request:
        """Check what a visitor asks for; if it can be run, it replaces the visitor's run under way.

        Raises:
            InvalidPrompt, InvalidSettings: it cannot be run; the message is for the visitor.
        """
        return self._opened(visitor, partial(race_of, prompt=prompt, lanes=lanes))

    def branch(self, visitor: str | None, run: str, lane: int, position: int, token: int) -> Request:
        """The same for a branch off a finished run.

        Raises:
            InvalidPrompt, InvalidSettings: it cannot be run; the message is for the visitor.
        """
        traces = self.finished(run)
        if traces is None:
            raise InvalidSettings(GONE)
        return self._opened(
            visitor,
            partial(branch_of, traces=traces, presets=self.models.presets, lane=lane, position=position, token=token),
        )

    def finished(self, run: str) -> tuple[Trace, ...] | None:
        """The traces of a finished run, as far as it is still kept."""
        return self.shelf.traces(run)

    def _opened(self, visitor: str | None, make: Callable[[str], Request]) -> Request:
        """A request under a new id, once all that can be checked by now is."""
        request = make("")
        for lane in request.lanes:
            if lane.preset not in self.models.presets:
                raise InvalidSettings(f"'{lane.preset}' is not offered here. Pairs: {', '.join(self.models.presets)}.")
        loaded = {lane.preset: self.models.ready(lane.preset) for lane in request.lanes}
        check_request(request, {key: pair for key, pair in loaded.items() if pair})  # the race checks the others
        return replace(request, run=self.runs.open(visitor))

    def moments(self, request: Request) -> Iterator[Moment]:
        """The race, moment by moment; none if it was stopped while it waited. Closing the iterator ends the compute."""
        stoppable = self.runs.begin(request.run)
        if stoppable is None:
            return
        try:
            to_come = self._wanted(request)
            yield from self._wait_for_models(to_come, stoppable)
            if stoppable.cancelled:
                yield Moment("done", NOT_BEGUN)
            else:
                yield from self._race(request, _results(to_come), stoppable)
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
            check_request(request, _results(self._wanted(request)))
            with closing(self._events(request)) as events:
                for event in events:
                    if isinstance(event, Ended):
                        traces[event.lane] = event.trace
                    yield list(traces)
        finally:
            self.runs.close(request.run)

    def _wanted(self, request: Request) -> dict[str, Future[ModelPair]]:
        return self.models.wanted({lane.preset for lane in request.lanes})

    def _events(self, request: Request) -> Generator[Event]:
        return self._engine(request.run, request.prompt, request.lanes, request.forced)

    def _wait_for_models(self, pairs: Mapping[str, Future[ModelPair]], stoppable: StoppableRun) -> Iterator[Moment]:
        started = time.monotonic()
        while not stoppable.cancelled and (loading := [key for key, pair in pairs.items() if not pair.done()]):
            seconds = time.monotonic() - started
            title = self.models.presets[loading[0]].title
            yield Moment("busy", f"Loading {title} … {seconds:.0f} s")
            wait([pairs[loading[0]]], timeout=0.5)

    def _race(self, request: Request, pairs: Pairs, stoppable: StoppableRun) -> Iterator[Moment]:
        check_request(request, pairs)
        contest = Contest.of(request, pairs)
        yield Moment("busy", RACING)
        try:
            with closing(self._events(request)) as events:
                yield from self._follow(contest, events, stoppable)
        except gr.Error as error:  # ZeroGPU says in words that there is no GPU to be had
            yield self._broken_off(contest, str(error.message))
        except Exception:
            LOG.exception("A race broke off")
            yield self._broken_off(contest, UNEXPECTED)

    def _follow(self, contest: Contest, events: Iterator[Event], stoppable: StoppableRun) -> Iterator[Moment]:
        shown_at = -math.inf
        for event in events:
            contest.take(event)
            if (
                stoppable.cancelled and ZERO_GPU
            ):  # the worker does not know; elsewhere the lanes end before their next pass
                break
            if time.monotonic() - shown_at >= 1 / UPDATES_PER_SECOND:
                yield Moment("busy", RACING, contest.race())
                shown_at = time.monotonic()
        contest.end()
        yield self._finished(contest, "done", contest.summary())

    def _broken_off(self, contest: Contest, sentence: str) -> Moment:
        """What was written stays; before anything was, the last race does."""
        if not contest.begun:
            return Moment("error", sentence)
        contest.end("Broken off.")
        return self._finished(contest, "error", sentence)

    def _finished(self, contest: Contest, kind: Kind, sentence: str) -> Moment:
        traces = contest.traces()
        is_kept = bool(traces) and self.shelf.put(contest.request.run, traces)
        finished = shown(contest.request.run, contest.views, contest.query(), is_kept=is_kept)
        return Moment(kind, sentence, *finished.parts)


def _results(futures: Mapping[str, Future[ModelPair]]) -> dict[str, ModelPair]:
    return {key: future.result() for key, future in futures.items()}
