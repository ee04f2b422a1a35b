"""Beam decoding of one block by the draft model: beams share one context as the nodes of a tree.

Beam sampling and beam search as MTAD drafts with them (Qin et al. 2025).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from decoding.context import TRUNK, Context
from decoding.streams import Stream


@dataclass(frozen=True)
class BeamNode:
    """A token that was a beam's end at some depth.

    Attributes:
        parent: index of the node before it; None at depth 1.
        log_q, joint_log_q: of the token given its path, and of the whole path.
    """

    parent: int | None
    depth: int
    token: int
    log_q: float
    joint_log_q: float


@dataclass(frozen=True)
class Beam:
    """A path under construction: its last node (None before the first), joint log Q, and log weight in the pool."""

    node: int | None
    joint_log_q: float
    log_weight: float


@dataclass
class BeamTree:
    """All nodes that ever were a beam's end, and the beams that reached the end of drafting.

    `laws` holds the draft's unwarped law, (vocabulary,), after each node that was fed; the key None is the law after the
    text itself. `slots` says which node of the draft's context each fed node is.
    """

    nodes: list[BeamNode] = field(default_factory=list)
    beams: list[Beam] = field(default_factory=list)
    laws: dict[int | None, Tensor] = field(default_factory=dict)
    slots: dict[int | None, int] = field(default_factory=lambda: {None: TRUNK})

    @property
    def chosen(self) -> list[int]:
        """The path of the beam with the largest joint probability, first node to last; the first of equals."""
        return self.path(max(self.beams, key=lambda beam: beam.joint_log_q).node)

    @property
    def alive(self) -> set[int]:
        """The nodes that a beam runs through at the end."""
        return {node for beam in self.beams for node in self.path(beam.node)}

    def end_through(self, node: int) -> int:
        """Of the ends of all paths that run through a node, dead ones too, that of the largest joint probability."""
        parents = {other.parent for other in self.nodes}
        ends = [end for end in range(len(self.nodes)) if end not in parents and node in self.path(end)]
        return max(ends, key=lambda end: self.nodes[end].joint_log_q)

    def path(self, node: int | None) -> list[int]:
        """The nodes from the root to `node`."""
        path: list[int] = []
        while node is not None:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]


Select = Callable[[Tensor, int], list[int]]


def draw_distinct(stream: Stream) -> Select:
    """Beam sampling: beams are drawn without replacement, by weight."""
    return stream.draw_distinct


def most_probable(log_weights: Tensor, count: int) -> list[int]:
    """Beam search: indices of the largest weights, largest first; the lowest index first among equals."""
    count = min(count, int(log_weights.isfinite().sum()))
    if count == 0:
        return []
    candidates = (log_weights >= log_weights.topk(count).values[-1]).nonzero().squeeze(-1)
    order = log_weights[candidates].argsort(descending=True, stable=True)
    return candidates[order][:count].tolist()


def decode_beams(
    context: Context,
    pending: list[int],
    *,
    length: int,
    width: int,
    select: Select,
    warp: Callable[[Tensor], Tensor],
    eos_ids: frozenset[int],
) -> BeamTree:
    """Draft up to `length` tokens with up to `width` beams, one forward pass per depth for all beams.

    The pool at each depth holds every one-token continuation of every beam, weighted by the beam's weight times the
    token's probability; a beam that ended in EOS stands in it as it is.

    Args:
        context: the draft's; fed `pending` and the beams' tokens but for the last depth's.
        select: picks up to n different indices from (pool,) log-weights.
        warp: from (rows, vocabulary) log-laws to those that are drafted from.
    """
    tree = BeamTree(beams=[Beam(None, 0.0, 0.0)])
    laws = context.feed(pending)
    for depth in range(1, length + 1):
        open_beams = [beam for beam in tree.beams if not _is_finished(tree, beam, eos_ids)]
        tree.laws |= {beam.node: laws[row] for row, beam in enumerate(open_beams)}
        _advance(tree, open_beams, warp(laws).double(), depth, width, select)
        grown = [beam for beam in tree.beams if not _is_finished(tree, beam, eos_ids)]
        if depth == length or not grown:
            break
        laws = _feed(context, tree, grown)
    return tree


def _is_finished(tree: BeamTree, beam: Beam, eos_ids: frozenset[int]) -> bool:
    return beam.node is not None and tree.nodes[beam.node].token in eos_ids


def _advance(tree: BeamTree, open_beams: list[Beam], log_q: Tensor, depth: int, width: int, select: Select) -> None:
    """Replace the tree's beams by those selected from the pool; `log_q` is (open beams, vocabulary)."""
    finished = [beam for beam in tree.beams if beam not in open_beams]
    vocabulary = log_q.shape[-1]
    weights = torch.tensor([beam.log_weight for beam in open_beams], dtype=log_q.dtype, device=log_q.device)
    waiting = torch.tensor([beam.log_weight for beam in finished], dtype=log_q.dtype, device=log_q.device)
    pool = torch.cat([(weights[:, None] + log_q).flatten(), waiting])
    selected = select(pool, width)
    log_weights = pool[selected].log_softmax(-1).tolist()
    beams = []
    for index, log_weight in zip(selected, log_weights, strict=True):
        row, token = divmod(index, vocabulary)
        if row >= len(open_beams):
            beam = finished[index - len(open_beams) * vocabulary]
        else:
            beam = _extend(tree, open_beams[row], token, float(log_q[row, token]), depth)
        beams.append(Beam(beam.node, beam.joint_log_q, log_weight))
    tree.beams = beams


def _extend(tree: BeamTree, beam: Beam, token: int, log_q: float, depth: int) -> Beam:
    node = BeamNode(beam.node, depth, token, log_q, beam.joint_log_q + log_q)
    tree.nodes.append(node)
    return Beam(len(tree.nodes) - 1, node.joint_log_q, beam.log_weight)


def _feed(context: Context, tree: BeamTree, beams: list[Beam]) -> Tensor:
    """Score the beams' last tokens in one pass; the laws after them, (beams, vocabulary)."""
    fed = len(tree.slots) - 1
    tree.slots |= {beam.node: fed + row for row, beam in enumerate(beams)}
    ends = [tree.nodes[beam.node] for beam in beams if beam.node is not None]
    return context.branch([node.token for node in ends], [tree.slots[node.parent] for node in ends])
