"""A text in a model's key/value cache: fed on, branched into a tree, cut back.

The cache is one row of slots. The *trunk* is the text itself; behind it may stand *nodes*, a tree of possible
continuations that share the trunk and each other's prefixes. A node sees the trunk, its ancestors and itself, at the
position its depth gives it. Forking into beams, re-ordering them and going on with one are then a matter of which
slots a mask shows and which are kept: nothing is copied per beam, nothing is run twice.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from decoding.slots import slot_cache

TRUNK = -1  # the parent of a node that follows the trunk directly


class Cancelled(Exception):
    """Raised in place of a forward pass once its run has been cancelled."""


@dataclass(frozen=True)
class Spent:
    """Forward passes, tokens fed in them, and wall-clock seconds, device-synchronised."""

    passes: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.passes + other.passes, self.tokens + other.tokens, self.seconds + other.seconds)

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.passes - other.passes, self.tokens - other.tokens, self.seconds - other.seconds)


class Context(Protocol):
    """What a method may do with a model. `tokens` is the trunk; `spent` is what all passes so far have cost."""

    tokens: list[int]
    spent: Spent

    def feed(self, tokens: Sequence[int], last: int = 1) -> Tensor:
        """Append tokens to the trunk; log-laws after the `last` ones, (last, vocabulary)."""

    def branch(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Append nodes; log-laws after each, (nodes, vocabulary). Nodes count from 0 in the order they were added."""

    def commit(self, path: Sequence[int]) -> None:
        """Make the nodes of a root path part of the trunk and drop all others."""

    def cut(self, length: int) -> None:
        """Cut the trunk back to `length` tokens and drop all nodes."""


class CachedContext:
    """The `Context` of a transformers model.

    Args:
        model: a causal LM whose cache grows by one slot per token and layer.
        vocabulary: how many ids of its head to use; what lies beyond is padding.
        before_pass: called before every forward pass; may raise `Cancelled`.
    """

    def __init__(self, model: PreTrainedModel, vocabulary: int, before_pass: Callable[[], None] = lambda: None) -> None:
        self.tokens: list[int] = []
        self.spent = Spent()
        self._model = model
        self._vocabulary = vocabulary
        self._before_pass = before_pass
        self._nodes: list[int] = []
        self._parents: list[int] = []
        self._cache = slot_cache()

    def feed(self, tokens: Sequence[int], last: int = 1) -> Tensor:
        if self._nodes:
            raise RuntimeError("the trunk cannot grow while nodes hang on it: commit or cut first")
        start = len(self.tokens)
        positions = list(range(start, start + len(tokens)))
        laws = self._forward(tokens, positions, attention_mask=None, last=last)
        self.tokens += tokens
        return laws

    def branch(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        self._nodes += tokens
        self._parents += parents
        visible, positions = self._view_of_last(len(tokens))
        return self._forward(tokens, positions, attention_mask=self._mask(visible, positions), last=len(tokens))

    def commit(self, path: Sequence[int]) -> None:
        if any(self._parents[node] != before for before, node in zip([TRUNK, *path], path, strict=False)):
            raise ValueError(f"nodes {list(path)} are not a path from the trunk")
        trunk = len(self.tokens)
        self.tokens += [self._nodes[node] for node in path]
        self._keep_nodes(trunk, path)

    def cut(self, length: int) -> None:
        if length > len(self.tokens):
            raise ValueError(f"the trunk has {len(self.tokens)} tokens and cannot be cut to {length}")
        surplus = len(self.tokens) + len(self._nodes) - length
        self._cache.crop(-surplus)
        self._nodes, self._parents = [], []
        del self.tokens[length:]

    def _forward(self, tokens: Sequence[int], positions: Sequence[int], attention_mask: Any, last: int) -> Tensor:
        self._before_pass()
        device = self._model.device
        started = time.perf_counter()
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.tensor([list(tokens)], device=device),
                position_ids=torch.tensor([list(positions)], device=device),
                attention_mask=attention_mask,
                cache=self._cache,
                use_cache=True,
                logits_to_keep=last,
            ).logits[0, :, : self._vocabulary]
            laws = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
            _synchronise(laws.device)
        self.spent += Spent(1, len(tokens), time.perf_counter() - started)
        return laws

    def _view_of_last(self, count: int) -> tuple[Tensor, list[int]]:
        """Which slots the last `count` nodes see, (count, slots) bool, and their positions."""
        trunk, slots = len(self.tokens), len(self.tokens) + len(self._nodes)
        visible = torch.zeros(count, slots, dtype=torch.bool)
        visible[:, :trunk] = True
        positions = []
        for row, node in enumerate(range(len(self._nodes) - count, len(self._nodes))):
            depth = 0
            while node != TRUNK:
                visible[row, trunk + node] = True
                node = self._parents[node]
                depth += 1
            positions.append(trunk + depth - 1)
        return visible, positions

    def _mask(self, visible: Tensor, positions: Sequence[int]) -> Tensor | dict[str, Tensor]:
        """Additive masks (1, 1, nodes, slots), one per kind of attention layer where the model has two."""
        kinds = attention_kinds(self._model)
        masks = {}
        for kind in kinds:
            seen = visible
            if kind == "sliding_attention":
                seen = visible & (self._distances(positions) < self._model.config.sliding_window)
            mask = torch.zeros(seen.shape, dtype=self._model.dtype).masked_fill(
                ~seen, torch.finfo(self._model.dtype).min
            )
            masks[kind] = mask[None, None].to(self._model.device)
        return masks if len(kinds) > 1 else masks[kinds[0]]

    def _distances(self, positions: Sequence[int]) -> Tensor:
        """Positions between each of the last nodes and every slot, (nodes, slots)."""
        trunk = len(self.tokens)
        depths: list[int] = []
        for parent in self._parents:
            depths.append(0 if parent == TRUNK else depths[parent] + 1)
        slots = torch.tensor([*range(trunk), *(trunk + depth for depth in depths)])
        return torch.tensor(positions)[:, None] - slots

    def _keep_nodes(self, trunk: int, path: Sequence[int]) -> None:
        if list(path) == list(range(len(path))):  # they stand where they are to stand
            self._cache.crop(len(path) - len(self._nodes))
        else:
            for layer in self._cache.layers:
                layer.keep(trunk, torch.tensor(path, device=layer.keys.device) + trunk)
        self._nodes, self._parents = [], []


def attention_kinds(model: PreTrainedModel) -> list[str]:
    """The kinds of attention layers a model has, each once, as its configuration names them."""
    config = model.config
    kinds = getattr(config, "layer_types", None)
    if not kinds:
        kinds = ["sliding_attention" if getattr(config, "sliding_window", None) else "full_attention"]
    return sorted(set(kinds))


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
