"""Replay: run a trace again and compare, step by step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoding.decode import Decoding
from decoding.pair import ModelPair
from decoding.trace import Step, Trace

TOLERANCE = 1e-3  # of log-probabilities and probabilities: other machines round otherwise


@dataclass(frozen=True)
class Difference:
    """Where a replay left the trace: step index (None: before the first step) and what differs, in words."""

    step: int | None
    what: str


def replay(trace: Trace, pair: ModelPair) -> Iterator[Difference | None]:
    """Run `trace` again on `pair`; yields, for each recorded step, None or how the replayed one differs.

    Tokens, structure and verdicts must be equal, numbers equal within `TOLERANCE`; time is not compared. The replay ends
    at the first difference, since every later step would follow from it. A last item tells of a wrong ending.

    Raises:
        InvalidPrompt, ValueError: as of `Decoding`.
    """
    decoding = Decoding(trace.method, pair, trace.prompt.text, trace.settings, forced=trace.forced)
    if decoding.prompt.token_ids != trace.prompt.token_ids:
        yield Difference(None, "the prompt is tokenised differently: these are not the models of the trace")
        return
    for recorded in trace.steps:
        replayed = next(decoding, None)
        difference = "the replay has already ended" if replayed is None else step_difference(recorded, replayed)
        yield Difference(recorded.index, difference) if difference else None
        if difference:
            return
    if trace.result.finish_reason != "cancelled" and not decoding.finished:
        yield Difference(len(trace.steps), "the trace has ended, but the replay goes on")


def step_difference(recorded: Step, replayed: Step) -> str | None:
    """The first difference of two steps in words, or None; costs are not compared."""
    ours, theirs = (step.model_dump(mode="json", exclude={"cost"}) for step in (recorded, replayed))
    return _difference(ours, theirs, "step")


def _difference(recorded: Any, replayed: Any, path: str) -> str | None:
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        pairs = [(f"{path}.{key}", recorded[key], replayed[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        pairs = [
            (f"{path}[{i}]", ours, theirs) for i, (ours, theirs) in enumerate(zip(recorded, replayed, strict=True))
        ]
    elif isinstance(recorded, float) and isinstance(replayed, float):
        return (
            None if math.isclose(recorded, replayed, abs_tol=TOLERANCE) else f"{path}: {recorded:.6g} → {replayed:.6g}"
        )
    else:
        return None if recorded == replayed else f"{path}: {_short(recorded)} → {_short(replayed)}"
    return next((found for where, ours, theirs in pairs if (found := _difference(ours, theirs, where))), None)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
