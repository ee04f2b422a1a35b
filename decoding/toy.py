"""Toy models: a law on a few tokens, given by a hash of the text or by a table, in float64.

They stand in for real models wherever exact numbers are wanted: a method runs on them unchanged, and its output law can
be enumerated (`decoding.enumeration`).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from decoding.context import TRUNK, Context, Spent

Text = tuple[int, ...]
LawOf = Callable[[Text], Sequence[float]]


@dataclass(frozen=True)
class ToyModel:
    """A model that is nothing but its laws.

    Attributes:
        law_of: from a text, as token ids, to the (vocabulary,) probabilities of its next token.
    """

    law_of: LawOf

    def open(self, before_pass: Callable[[], None] = lambda: None) -> Context:
        """An empty context of this model; `before_pass` is called before every "forward pass"."""
        return ToyContext(self.law_of, before_pass)


def hashed(vocabulary: int, seed: int = 0, sharpness: float = 1.0) -> ToyModel:
    """A model whose law after each text looks random, and is always the same.

    Args:
        vocabulary: how many tokens there are.
        sharpness: scale of the normal logits; 0 makes every law uniform.
    """

    def law_of(text: Text) -> Sequence[float]:
        digest = hashlib.sha256(repr((seed, text)).encode()).digest()
        logits = sharpness * np.random.default_rng(list(digest)).standard_normal(vocabulary)
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    return ToyModel(law_of)


def tabled(laws: Mapping[Text, Sequence[float]]) -> ToyModel:
    """A model whose laws are written down: the law after a text is that of its longest ending in the table.

    Args:
        laws: from endings of texts to probabilities, all of the same length; the empty ending is the law of all texts
            that no other entry covers.

    Raises:
        ValueError: the empty ending is missing, or an entry is not a law on the same tokens as it.

    >>> tabled({(): [0.5, 0.5], (1,): [0.9, 0.1]}).law_of((0, 1))
    (0.9, 0.1)
    """
    if () not in laws:
        raise ValueError("The table needs a law for the empty ending (), which holds wherever no other entry does.")
    table = {tuple(ending): tuple(map(float, law)) for ending, law in laws.items()}
    for ending, law in table.items():
        if len(law) != len(table[()]) or min(law) < 0 or abs(sum(law) - 1) > 1e-9:
            raise ValueError(f"The entry for {ending} is not a law on {len(table[()])} tokens: {law}.")
    longest = max(map(len, table))

    def law_of(text: Text) -> Sequence[float]:
        endings = (text[len(text) - length :] for length in range(min(longest, len(text)), -1, -1))
        return next(table[ending] for ending in endings if ending in table)

    return ToyModel(law_of)


class ToyContext:
    """The `Context` of a toy model: it keeps the text and the paths of its nodes, and looks laws up."""

    def __init__(self, law_of: LawOf, before_pass: Callable[[], None]) -> None:
        self.tokens: list[int] = []
        self.spent = Spent()
        self._law_of = law_of
        self._before_pass = before_pass
        self._paths: list[Text] = []

    def feed(self, tokens: Sequence[int], last: int = 1) -> Tensor:
        if self._paths:
            raise RuntimeError("the trunk cannot grow while nodes hang on it: commit or cut first")
        self._pass(tokens)
        self.tokens += tokens
        length = len(self.tokens)
        return self._laws([tuple(self.tokens[:end]) for end in range(length - last + 1, length + 1)])

    def branch(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        self._pass(tokens)
        for token, parent in zip(tokens, parents, strict=True):
            self._paths.append((*(() if parent == TRUNK else self._paths[parent]), token))
        return self._laws([(*self.tokens, *path) for path in self._paths[-len(tokens) :]])

    def commit(self, path: Sequence[int]) -> None:
        ends = [self._paths[node] for node in path]
        if any(end[:-1] != before for before, end in zip([(), *ends], ends, strict=False)):
            raise ValueError(f"nodes {list(path)} are not a path from the trunk")
        self.tokens += ends[-1] if ends else ()
        self._paths = []

    def cut(self, length: int) -> None:
        if length > len(self.tokens):
            raise ValueError(f"the trunk has {len(self.tokens)} tokens and cannot be cut to {length}")
        del self.tokens[length:]
        self._paths = []

    def _pass(self, tokens: Sequence[int]) -> None:
        self._before_pass()
        self.spent += Spent(1, len(tokens))

    def _laws(self, texts: Sequence[Text]) -> Tensor:
        return torch.tensor(np.array([self._law_of(text) for text in texts]), dtype=torch.float64).log()
