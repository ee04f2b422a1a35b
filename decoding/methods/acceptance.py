"""The acceptance rules: pure functions of log-probabilities."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def acceptance_probability(log_p: float, log_q: float) -> float:
    """min(1, p/q): the probability that speculative decoding accepts a token drafted with probability q > 0.

    Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.
    """
    return math.exp(min(0.0, log_p - log_q))


def residual(log_p: Tensor, log_q: Tensor) -> Tensor:
    """norm(max(p − q, 0)), the law of the token that replaces a refused one, as (vocabulary,) log-weights.

    Where p = q up to rounding nothing is left; p itself is returned then. Not normalised: streams do not need it.
    """
    left = (log_p.exp() - log_q.exp()).clamp(min=0)
    return left.log() if left.any() else log_p


def kept_prefix(joint_log_p: Sequence[float], joint_log_q: Sequence[float], threshold: float) -> int:
    """The length of the longest prefix whose joint ratio P/Q exceeds τ; 0 if none does.

    Not monotone: a longer prefix may pass where a shorter one fails, and is then kept whole (MTAD, Qin et al. 2025).

    >>> p, q = [0.5, 0.02, 0.9, 0.9], [0.6, 0.5, 0.6, 0.6]
    >>> log_p, log_q = ([math.log(math.prod(law[:j])) for j in range(1, 5)] for law in (p, q))
    >>> kept_prefix(log_p, log_q, threshold=0.05)
    4
    """
    passing = [j for j, passes in enumerate(prefix_passes(joint_log_p, joint_log_q, threshold), start=1) if passes]
    return max(passing, default=0)


def prefix_passes(joint_log_p: Sequence[float], joint_log_q: Sequence[float], threshold: float) -> list[bool]:
    """For each prefix, whether log P − log Q > log τ."""
    return [p - q > math.log(threshold) for p, q in zip(joint_log_p, joint_log_q, strict=True)]


def running_sum(log_probabilities: Sequence[float]) -> list[float]:
    """Joint log-probabilities of all prefixes."""
    return torch.tensor(log_probabilities, dtype=torch.float64).cumsum(0).tolist()
