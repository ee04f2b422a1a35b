"""Where in a finished run something worth seeing happens: traces of its lanes in, a place out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, inf

from decoding.trace import Step, Trace, Verdict

Score = Callable[[Step], float | None]


@dataclass(frozen=True)
class Place:
    """A step of a lane, and which of the step's tokens; all count from 0."""

    lane: int
    step: int
    token: int


def find(sight: str, traces: Sequence[Trace]) -> Place | None:
    """The place of a run that shows a sight best; None if it does not occur.

    Args:
        sight: a key of `SIGHTS`.
    """
    method, score = SIGHTS[sight]
    lane = next((i for i, trace in enumerate(traces) if trace.method == method), None)
    if lane is None:
        return None
    scored = [(value, step) for step in traces[lane].steps if (value := score(step)) is not None]
    if not scored:
        return None
    _, step = max(scored, key=lambda entry: entry[0])  # the first of equals
    return Place(lane, step.index, max(0, len(step.emitted) - 1))


def _openness(step: Step) -> float:
    """How open the target was."""
    return step.choices[-1].entropy_p


def _sureness(step: Step) -> float:
    return -_openness(step)


def _refusal(step: Step) -> float | None:
    """A refused token that the draft thought likelier than the target does: by how much."""
    refused = first_refused(step)
    return exp(refused.log_q) - exp(refused.log_p) if refused and refused.log_p > -inf else None


def _ruled_out(step: Step) -> float | None:
    """A refused token that the target's warped law does not have at all: how likely the draft thought it."""
    refused = first_refused(step)
    return exp(refused.log_q) if refused and refused.log_p == -inf else None


def _whole_block(step: Step) -> float | None:
    """A block kept whole, and one more token: how long it is."""
    whole = len(step.verdicts) > 1 and all(verdict.accepted for verdict in step.verdicts)
    return float(len(step.verdicts)) if whole and step.emitted[-1].origin != "accepted" else None


def _part(step: Step) -> float | None:
    """A part of a block kept, whatever came behind it: how long it is."""
    kept = sum(verdict.accepted for verdict in step.verdicts)
    return float(kept) if 0 < kept < len(step.verdicts) else None


def _prefix(step: Step) -> float | None:
    """A part of a block kept, all of it passing alone, before a token that is possible: how long it is."""
    kept = [verdict for verdict in step.verdicts if verdict.accepted]
    if not kept or len(kept) == len(step.verdicts) or not all(verdict.passes for verdict in kept):
        return None
    return float(len(kept)) if step.verdicts[len(kept)].joint_log_p > -inf else None


def _rescue(step: Step) -> float | None:
    """Prefixes that fail, kept with a longer one that passes: how many."""
    return float(len(rescued(step))) or None


def _bargain(step: Step) -> float | None:
    """A kept token that the target finds much less likely than the draft: how far p/q is below 1."""
    worst = least_deserved(step)
    return -(worst.log_p - worst.log_q) if worst and worst.log_p < worst.log_q else None


def _repetition(step: Step) -> float | None:
    """The last whole block: what repeats is easy to draft."""
    return step.index if _whole_block(step) else None


SIGHTS: dict[str, tuple[str, Score]] = {
    "hard choice": ("single_token", _openness),
    "sure thing": ("single_token", _sureness),
    "refusal": ("speculative", _refusal),
    "ruled out": ("speculative", _ruled_out),
    "bargain kept": ("speculative", _whole_block),
    "prefix": ("mtad", _prefix),
    "part": ("mtad", _part),
    "rescue": ("mtad", _rescue),
    "whole block": ("mtad", _whole_block),
    "last whole block": ("mtad", _repetition),
    "given up": ("mtad", _bargain),
}


def first_refused(step: Step) -> Verdict | None:
    """The first token that was not kept."""
    return next((verdict for verdict in step.verdicts if not verdict.accepted), None)


def rescued(step: Step) -> list[Verdict]:
    """Those that were kept although the rule does not hold at their depth."""
    return [verdict for verdict in step.verdicts if verdict.accepted and not verdict.passes]


def least_deserved(step: Step) -> Verdict | None:
    """The kept token of least p/q."""
    return min(_kept(step), key=lambda verdict: verdict.log_p - verdict.log_q, default=None)


def _kept(step: Step) -> Iterator[Verdict]:
    return (verdict for verdict in step.verdicts if verdict.accepted)
