"""A race as it is shown while it goes on: finished lanes beside it, running ones, and their traces as they come."""

from dataclasses import dataclass, field
from functools import partial

from app.engine import Advanced, Ended, Event, Failed
from app.lanes import Data, LaneView, Spelling, lane_views, model_names, race_data
from app.narration import count
from app.permalink import to_query
from app.requests import Pairs, Request
from app.shown import branch_title, trace_views
from decoding.pair import ModelPair
from decoding.surface import surface
from decoding.trace import Trace


@dataclass
class Contest:
    """The lanes of a request: those beside it first, then its own.

    Attributes:
        views: all of them.
        own: those that run.
    """

    request: Request
    views: list[LaneView]
    own: list[LaneView]
    _traces: dict[int, Trace] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, pairs: Pairs) -> "Contest":
        """Before its first step."""
        beside = trace_views(request.beside)
        own = _own_views(request, pairs)
        if request.origin is not None:
            for view in own:
                view.title = branch_title(beside[request.origin].title, request.forced)
        return cls(request, [*beside, *own], own)

    def take(self, event: Event) -> None:
        """Enter an event of the engine into the lane it is about."""
        view = self.own[event.lane]
        match event:
            case Advanced():
                view.add(event.step)
            case Ended():
                view.end(event.reason)
                self._traces[event.lane] = Trace.model_validate(event.trace)
            case Failed():
                view.fail(event.sentence)
                self._traces[event.lane] = Trace.model_validate(event.trace)

    def end(self, sentence: str | None = None) -> None:
        """End the lanes that still run: stopped or, with a sentence, broken."""
        for view in self.own:
            if not view.over:
                view.fail(sentence) if sentence else view.end("cancelled")

    def race(self) -> Data:
        """What the page draws of it."""
        return race_data(self.request.run, self.views)

    def traces(self) -> list[Trace]:
        """The traces there are, in the order of the lanes, if there are those of all lanes; otherwise none."""
        complete = len(self._traces) == len(self.own)
        return [*self.request.beside, *(self._traces[i] for i in range(len(self.own)))] if complete else []

    def query(self) -> str | None:
        """Of an address that runs the race again; a branch has none."""
        return None if self.request.forced else to_query(self.request.prompt, self.request.lanes)

    @property
    def begun(self) -> bool:
        """Whether there is anything to show of it."""
        return any(view.steps for view in self.own)

    def summary(self) -> str:
        """Its end, in a sentence."""
        tokens = sum(len(step.emitted) for view in self.own for step in view.steps)
        seconds = sum(step.cost.seconds for view in self.own for step in view.steps)
        ending = "Stopped" if any(view.state == "stopped" for view in self.own) else "Finished"
        return f"{ending}: {count(tokens, 'token')} in {count(len(self.own), 'lane')}, {seconds:.1f} s of decoding."


def _own_views(request: Request, pairs: Pairs) -> list[LaneView]:
    models = [_names(lane.method, pairs[lane.preset]) for lane in request.lanes]
    return lane_views(request.lanes, models, [_spelling(pairs[lane.preset]) for lane in request.lanes])


def _names(method: str, pair: ModelPair) -> str:
    return model_names(method, pair.target.info.name, pair.draft.info.name if pair.draft else "no draft")


def _spelling(pair: ModelPair) -> Spelling:
    tokenizer = pair.target.tokenizer
    return Spelling(partial(surface, tokenizer), frozenset(tokenizer.all_special_ids), pair.target.eos_ids)
