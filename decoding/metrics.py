"""Figures of a run, taken from its steps."""

import math
from collections.abc import Sequence

from decoding.trace import DepthAcceptance, Metrics, Step, forced_tokens


def run_metrics(steps: Sequence[Step], prefill_seconds: float) -> Metrics:
    """All figures of the steps so far; prefill is apart."""
    emitted = [token for step in steps for token in step.emitted]
    tokens = [token.token for token in emitted]
    verdicts = [verdict for step in steps for verdict in step.verdicts]
    target_passes = sum(step.cost.target_passes for step in steps)
    accepted = sum(verdict.accepted for verdict in verdicts)
    seconds = math.fsum(step.cost.seconds for step in steps)
    joules = [step.cost.joules for step in steps]
    decoded = len(tokens) - len(forced_tokens(steps))
    return Metrics(
        tokens=len(tokens),
        target_passes=target_passes,
        draft_passes=sum(step.cost.draft_passes for step in steps),
        tokens_per_target_pass=ratio(decoded, target_passes),
        drafted=len(verdicts),
        accepted=accepted,
        acceptance_rate=ratio(accepted, len(verdicts)),
        acceptance_by_depth=acceptance_by_depth(steps),
        perplexity=perplexity([token.log_p for token in emitted]),
        distinct_1=distinct(tokens, 1),
        distinct_2=distinct(tokens, 2),
        distinct_3=distinct(tokens, 3),
        seconds=seconds,
        target_seconds=math.fsum(step.cost.target_seconds for step in steps),
        draft_seconds=math.fsum(step.cost.draft_seconds for step in steps),
        prefill_seconds=prefill_seconds,
        tokens_per_second=ratio(decoded, seconds),
        joules=None if None in joules or not joules else math.fsum(j for j in joules if j is not None),
    )


def perplexity(log_p: Sequence[float]) -> float | None:
    """exp(−mean log p); None of no tokens."""
    return math.exp(-math.fsum(log_p) / len(log_p)) if log_p else None


def distinct(tokens: Sequence[int], n: int) -> float | None:
    """Different n-grams per n-gram (Li et al. 2016); None if the text is shorter than n."""
    grams = list(zip(*(tokens[i:] for i in range(n)), strict=False))
    return ratio(len(set(grams)), len(grams))


def acceptance_by_depth(steps: Sequence[Step]) -> tuple[DepthAcceptance, ...]:
    """For each depth, how many chosen blocks reached it and how many of these tokens were kept."""
    verdicts = [verdict for step in steps for verdict in step.verdicts]
    depths = range(1, max((verdict.depth for verdict in verdicts), default=0) + 1)
    at_depth = {depth: [verdict.accepted for verdict in verdicts if verdict.depth == depth] for depth in depths}
    return tuple(DepthAcceptance(depth=d, drafted=len(kept), accepted=sum(kept)) for d, kept in at_depth.items())


def ratio(part: float, whole: float) -> float | None:
    """part / whole, or None where there is nothing to divide by."""
    return part / whole if whole else None
