"""Randomness of a run: three independent streams, from a seed and the lane they are for.

Draft draws, acceptance draws and target draws never share a stream, so what a lane writes does not depend on who else
runs. There is no global random state. A method takes all its randomness from these few calls, which lets
`decoding.enumeration` put a walker of all branches in their place.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


class Stream(ABC):
    """A source of draws from finite laws."""

    @abstractmethod
    def pick(self, weights: np.ndarray) -> int:
        """An index of `weights` (n,), float64, with probability proportional to its weight."""

    @abstractmethod
    def uniform(self, split: float) -> float:
        """A number from U[0, 1) that the caller will compare with `split`, and with nothing else."""

    def draw(self, log_law: Tensor) -> int:
        """A token from a law of (vocabulary,) log-probabilities."""
        return self.draw_distinct(log_law, 1)[0]

    def draw_distinct(self, log_weights: Tensor, count: int) -> list[int]:
        """Up to `count` different indices, drawn one after the other without replacement, in the order drawn.

        Args:
            log_weights: (n,) logs of unnormalised weights. Indices of weight 0 are never drawn, so that fewer than
                `count` may come back.
        """
        support = log_weights.isfinite().nonzero().squeeze(-1)
        logs = log_weights[support].double()
        weights = (logs - logs.max()).exp().cpu().numpy()
        drawn: list[int] = []
        for _ in range(min(count, len(support))):
            index = self.pick(weights)
            drawn.append(int(support[index]))
            weights[index] = 0.0
        return drawn


class SeededStream(Stream):
    """Draws by inverting the cumulative weights at one uniform number each: cheap, and the same on every device."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)

    def pick(self, weights: np.ndarray) -> int:
        cumulative = weights.cumsum()
        index = int(np.searchsorted(cumulative, self.uniform(0.0) * cumulative[-1], side="right"))
        # u just below 1 may be rounded up to the full mass; the last index that has weight is then the one meant
        return min(index, int(np.flatnonzero(weights)[-1]))

    def uniform(self, split: float) -> float:
        return float(torch.rand((), generator=self._generator, dtype=torch.float64))


@dataclass(frozen=True)
class Streams:
    """The three streams of one lane."""

    draft: Stream
    acceptance: Stream
    target: Stream

    @classmethod
    def seeded(cls, seed: int, lane: str) -> "Streams":
        """Streams that depend on the seed and the lane's name alone."""
        return cls(*(SeededStream(seed, lane, purpose) for purpose in ("draft", "acceptance", "target")))
