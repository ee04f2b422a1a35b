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


def typical_bar(entropy: float, threshold: float) -> float:
    """min(τ, √τ · exp(−H)): what the target's probability of a token must exceed to be typical enough.

    Cai et al. 2024, section 2.3.1, with their ε as τ and their δ as √ε. Where the target hesitates, less is asked.

    Args:
        entropy: of the target's law, in nats.
    """
    return min(threshold, math.sqrt(threshold) * math.exp(-entropy))


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


def kept_node(
    depths: Sequence[int], joint_log_p: Sequence[float], joint_log_q: Sequence[float], threshold: float
) -> int | None:
    """The node of a drafted tree that tree verification keeps, with all before it; None if no node passes.

    A node passes if log P − max log Q > log τ, the maximum being taken over all nodes of its depth. Of the deepest that
    pass, the one of largest P is kept, the first of equals (tree verification of MTAD, by its authors, 2025).

    >>> depths, p, q = [1, 1, 2, 2], [0.3, 0.6, 0.2, 0.3], [0.5, 0.4, 0.4, 0.1]
    >>> kept_node(depths, [math.log(x) for x in p], [math.log(x) for x in q], threshold=0.7)
    3
    """
    bar = largest_by_depth(depths, joint_log_q)
    passes = prefix_passes(joint_log_p, [bar[depth] for depth in depths], threshold)
    passing = [i for i, node_passes in enumerate(passes) if node_passes]
    return max(passing, key=lambda i: (depths[i], joint_log_p[i], -i), default=None)


def largest_by_depth(depths: Sequence[int], joint_log_q: Sequence[float]) -> dict[int, float]:
    """The largest joint log-probability of the nodes at each depth."""
    largest: dict[int, float] = {}
    for depth, log_q in zip(depths, joint_log_q, strict=True):
        largest[depth] = max(log_q, largest.get(depth, -math.inf))
    return largest


def running_sum(log_probabilities: Sequence[float]) -> list[float]:
    """Joint log-probabilities of all prefixes."""
    return torch.tensor(log_probabilities, dtype=torch.float64).cumsum(0).tolist()
