"""The most probable blocks of tokens under a law, found without enumerating them: best-first search over prefixes.

A block is γ tokens, or fewer that end in an end of text. No log-probability is above 0, so a prefix bounds whatever
continues it, and a block that is more probable than every prefix still open is the best one (Dijkstra 1959; for
multi-token joint decoding, Qin et al. 2025).
"""

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from decoding.methods.beams import most_probable

Path = tuple[int, ...]
LawsAfter = Callable[[Sequence[Path]], Tensor]
BATCH = 8  # prefixes scored in one pass: on a CPU that costs little more than one alone


@dataclass(frozen=True)
class Block:
    """Tokens, and their joint log-probability."""

    path: Path
    log_p: float


@dataclass(frozen=True)
class Found:
    """What a search has found.

    Attributes:
        blocks: the best blocks known, best first; of equals, the one whose token ids come first in lexicographic order.
        proven: how many of them are exactly the best of all blocks, in exactly this order.
        bound: no block but the proven ones has a larger joint log-probability; −∞ if there is no other block.
        scored: the prefixes whose next-token law was looked at, in this order: the evaluations that the search cost.
    """

    blocks: tuple[Block, ...]
    proven: int
    bound: float
    scored: tuple[Path, ...]

    @property
    def shortfall(self) -> float:
        """How much more log-probability the best block of all may have than the best one found; 0 if that is proven."""
        return 0.0 if self.proven else max(0.0, self.bound - self.blocks[0].log_p)


def best_blocks(
    laws_after: LawsAfter,
    *,
    length: int,
    count: int = 1,
    eos_ids: frozenset[int] = frozenset(),
    budget: int,
    batch: int = BATCH,
) -> Found:
    """The `count` most probable blocks of `length` tokens, or the best ones that were found within `budget` evaluations.

    Until a first block is complete, every pass goes on from the deepest prefix too, so that there is a block whenever
    the budget ends.

    Args:
        laws_after: from n prefixes to the (n, vocabulary) log-laws of the token after each; asked once per prefix, and
            for a prefix only after all shorter ones of its own.
        eos_ids: tokens that complete a block wherever they stand in it.
        budget: most prefixes to score, at least `length`.
        batch: most prefixes to score in one pass; a few may turn out not to have been needed.

    Raises:
        ValueError: the budget does not reach to the end of a block.

    >>> import torch
    >>> laws = {(): [0.6, 0.4], (0,): [0.5, 0.5], (1,): [0.9, 0.1]}
    >>> found = best_blocks(lambda paths: torch.tensor([laws[path] for path in paths]).log(), length=2, budget=9)
    >>> found.blocks[0].path, round(math.exp(found.blocks[0].log_p), 2), found.proven  # greedy would have begun with 0
    ((1, 0), 0.36, 1)
    """
    if budget < length:
        raise ValueError(f"A budget of {budget} evaluations does not reach to the end of a block of {length} tokens.")
    frontier = _Frontier(length, eos_ids, budget=budget, breadth=budget + count)
    frontier.score([_Entry(0.0, ())], laws_after)
    proven: list[_Entry] = []
    while True:
        proven += frontier.take_blocks(count - len(proven))
        if len(proven) == count or not frontier.entries or not frontier.left:
            break
        frontier.score(frontier.take_prefixes(batch, count - len(proven)), laws_after)
    bound = frontier.entries[0].log_p if frontier.entries else -math.inf
    blocks = proven + frontier.take_known_blocks(count - len(proven))
    return Found(tuple(Block(entry.path, entry.log_p) for entry in blocks), len(proven), bound, tuple(frontier.scored))


@dataclass(frozen=True, order=True)
class _Entry:
    """A prefix or a block that waits in the frontier; the most probable sorts first, then the lowest token ids."""

    cost: float  # −log P
    path: Path
    rank: int = field(default=0, compare=False)  # among its siblings

    @property
    def log_p(self) -> float:
        return -self.cost


@dataclass
class _Frontier:
    """Open prefixes and complete blocks, in order. Of each family of siblings only the best that is left stands in it.

    Equally probable entries stand in the order of their token ids. An open prefix comes before all that continues it, so
    blocks leave the frontier in that order too.
    """

    length: int
    eos_ids: frozenset[int]
    budget: int
    breadth: int  # no search looks at more siblings than this
    entries: list[_Entry] = field(default_factory=list)
    scored: list[Path] = field(default_factory=list)
    reached: bool = False  # the end of a block
    _families: dict[Path, list[_Entry]] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Evaluations left in the budget."""
        return self.budget - len(self.scored)

    def score(self, prefixes: Sequence[_Entry], laws_after: LawsAfter) -> None:
        """Let the prefixes' continuations enter."""
        laws = laws_after([prefix.path for prefix in prefixes])
        for prefix, law in zip(prefixes, laws, strict=True):
            tokens = most_probable(law, self.breadth)
            logs = law[tokens].double().clamp(max=0.0).tolist()  # rounding may have put them a hair above
            siblings = sorted(
                (prefix.cost - log, (*prefix.path, token)) for token, log in zip(tokens, logs, strict=True)
            )
            self._families[prefix.path] = [_Entry(*sibling, rank) for rank, sibling in enumerate(siblings)]
            self.scored.append(prefix.path)
            self._enter_next(prefix.path, 0)

    def take_blocks(self, most: int) -> list[_Entry]:
        """Take complete blocks from the top, as many as stand there before any open prefix."""
        taken: list[_Entry] = []
        while len(taken) < most and self.entries and self._is_complete(self.entries[0]):
            taken.append(self._take(0))
        return taken

    def take_prefixes(self, most: int, blocks_wanted: int) -> list[_Entry]:
        """Take the open prefixes that come first, but none behind as many complete blocks as are wanted."""
        room = min(most, self.left)
        taken: list[_Entry] = []
        if not self.reached:
            deepest = max(range(len(self.entries)), key=lambda i: len(self.entries[i].path))
            room = min(room, self.left - (self.length - len(self.entries[deepest].path)) + 1)
            taken.append(self._take(deepest))
        index = blocks_before = 0
        while len(taken) < room and index < len(self.entries) and blocks_before < blocks_wanted:
            if self._is_complete(self.entries[index]):
                blocks_before += 1
                index += 1
            else:
                taken.append(self._take(index))
        return taken

    def take_known_blocks(self, most: int) -> list[_Entry]:
        """Take the best complete blocks that can be had without scoring more, and every prefix that comes before them."""
        known: list[_Entry] = []
        while len(known) < most and self.entries:
            entry = self._take(0)
            if self._is_complete(entry):
                known.append(entry)
        return known

    def _is_complete(self, entry: _Entry) -> bool:
        return len(entry.path) == self.length or entry.path[-1] in self.eos_ids

    def _take(self, index: int) -> _Entry:
        """Take an entry; its next sibling enters."""
        entry = self.entries.pop(index)
        self._enter_next(entry.path[:-1], entry.rank + 1)
        return entry

    def _enter_next(self, parent: Path, rank: int) -> None:
        family = self._families[parent]
        if rank < len(family):
            insort(self.entries, family[rank])
            self.reached = self.reached or self._is_complete(family[rank])
