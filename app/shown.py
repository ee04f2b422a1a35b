"""A finished run, from its traces to all that the page shows of it. No model is needed for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.inspector import Inspection
from app.lanes import Data, LaneView, Spelling, lane_views, model_names, race_data
from app.overview import overview_data
from app.permalink import to_query
from decoding.lane import Lane
from decoding.methods import METHODS
from decoding.presets import DEFAULT_PRESET, PRESETS, Preset
from decoding.trace import Trace
from decoding.trace_file import InvalidTrace

Presets = Mapping[str, Preset]


@dataclass(frozen=True)
class Shown:
    """What the page shows of a finished run: its lanes, its steps, the views of it, and how it can be kept."""

    race: Data
    steps: Data
    overview: Data
    keeping: Data

    @property
    def parts(self) -> tuple[Data, ...]:
        """What the parts of the page show, in their order there."""
        return self.race, self.steps, self.overview, self.keeping


def show(
    run: str, traces: Sequence[Trace], presets: Presets = PRESETS, query: str | None = None, place: str = ""
) -> Shown:
    """All of a finished run.

    Args:
        presets: the pairs on offer.
        query: of an address that shows it; by default one that runs it again, if there is one.
        place: the step to open first, "lane.step", both counted from 1.

    Raises:
        InvalidTrace: a trace is of a method that is not known here.
    """
    views = trace_views(traces, presets)
    if (
        query is None
        and all(preset_of(trace, presets) for trace in traces)
        and len({trace.prompt for trace in traces}) == 1
    ):
        query = to_query(traces[0].prompt.text, [view.lane for view in views])
    return shown(run, views, query, is_kept=True, place=place)


def shown(run: str, views: Sequence[LaneView], query: str | None, *, is_kept: bool, place: str = "") -> Shown:
    """The same of views whose lanes are over; `is_kept` is whether the server has the run's traces."""
    keeping = {"run": run, "query": query, "kept": is_kept}
    steps = Inspection(run, views).data() | {"open": place}
    return Shown(race_data(run, views), steps, overview_data(run, views), keeping)


def trace_views(traces: Sequence[Trace], presets: Presets = PRESETS) -> list[LaneView]:
    """The lanes of a race, each at its end.

    Raises:
        InvalidTrace: a trace is of a method that is not known here.
    """
    lanes = [_lane(trace, presets) for trace in traces]
    models = [model_names(t.method, t.target.name, t.draft.name if t.draft else "no draft") for t in traces]
    spellings = [Spelling(t.tokens.__getitem__, frozenset(t.special_ids), frozenset(t.eos_ids)) for t in traces]
    views = lane_views(lanes, models, spellings)
    for view, trace in zip(views, traces, strict=True):
        for step in trace.steps:
            view.add(step)
        view.title = branch_title(view.title, trace.forced)
        view.end(trace.result.finish_reason)
    return views


def branch_title(title: str, forced: Sequence[int]) -> str:
    """The title of a lane that begins with forced tokens, of which the last is where it branched off."""
    return f"{title} · branch at token {len(forced)}" if forced else title


def preset_of(trace: Trace, presets: Presets) -> str | None:
    """Which of the pairs a trace was made with, if it is one of them."""
    for key, preset in presets.items():
        if trace.target.source == preset.target and (trace.draft is None or trace.draft.source == preset.draft):
            return key
    return None


def _lane(trace: Trace, presets: Presets) -> Lane:
    if trace.method not in METHODS:
        raise InvalidTrace(f"its method '{trace.method}' is not known here. Methods: {', '.join(METHODS)}.")
    return Lane(method=trace.method, preset=preset_of(trace, presets) or DEFAULT_PRESET, settings=trace.settings)
