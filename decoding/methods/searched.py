"""The prefixes that a search has looked at, as a tree in a model's context."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from decoding.context import TRUNK, Context
from decoding.methods.best_first import Path


class SearchedTree:
    """Laws after prefixes, each from one forward pass over only what is new; see `best_blocks`.

    Args:
        pending: the tokens of the text that the context has not been fed yet, at least one.
        warp: from (rows, vocabulary) log-laws to those that are searched.

    Attributes:
        laws: the unwarped law, (vocabulary,), after each prefix that was looked at.
        slots: which node of the context each of them is.
    """

    def __init__(self, context: Context, pending: Sequence[int], warp: Callable[[Tensor], Tensor]) -> None:
        self.laws: dict[Path, Tensor] = {}
        self._searched: dict[Path, Tensor] = {}
        self.slots: dict[Path, int] = {(): TRUNK}
        self._context = context
        self._pending = pending
        self._warp = warp

    def laws_after(self, prefixes: Sequence[Path]) -> Tensor:
        """The searched log-laws after prefixes, (prefixes, vocabulary), in one pass; the first is the empty one, alone."""
        laws = self._context.branch(*self._grow(prefixes)) if self.laws else self._context.feed(self._pending)
        searched = self._warp(laws)
        self.laws |= dict(zip(prefixes, laws, strict=True))
        self._searched |= dict(zip(prefixes, searched, strict=True))
        return searched

    def searched_log(self, path: Path) -> float:
        """The log-probability of a path's last token given those before it, under the searched law."""
        return float(self._searched[path[:-1]][path[-1]])

    def law_before_each(self, block: Path) -> Tensor:
        """The unwarped laws that the tokens of a block were taken from, (tokens, vocabulary)."""
        return torch.stack([self.laws[block[:end]] for end in range(len(block))])

    def keep(self, path: Path) -> None:
        """Make those tokens of a block that were fed part of the context's text, and drop all else."""
        fed = (path[:end] for end in range(1, len(path) + 1))
        self._context.commit([self.slots[prefix] for prefix in fed if prefix in self.slots])

    def _grow(self, prefixes: Sequence[Path]) -> tuple[list[int], list[int]]:
        """Tokens and parents of new nodes, for `Context.branch`."""
        fed = len(self.slots) - 1
        parents = [self.slots[prefix[:-1]] for prefix in prefixes]
        self.slots |= {prefix: fed + row for row, prefix in enumerate(prefixes)}
        return [prefix[-1] for prefix in prefixes], parents
