"""MTAD, multi-token assisted decoding: the draft's best block, kept as far as its joint probability allows.

Qin et al., ICLR 2025, "Optimized Multi-Token Joint Decoding with Auxiliary Model for LLM Inference". Not lossless: it
trades the target's law of single tokens for blocks of higher joint probability.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from decoding.context import TRUNK
from decoding.methods.acceptance import kept_node, kept_prefix, largest_by_depth, prefix_passes, running_sum
from decoding.methods.beams import BeamTree, decode_beams, draw_distinct, most_probable
from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Draft, Emitted, Node, Origin, Step, Verdict

Scores = Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class Verified:
    """What the target said about a drafted tree.

    Attributes:
        chosen: the block that was put forward, as nodes of the tree.
        verdicts: one per token of it.
        log_p: the target's unwarped laws before each token of the block and after it, (block + 1, vocabulary).
        scores: log p and joint log P of each node that the target scored, under the laws that the rule compares.
    """

    chosen: list[int]
    verdicts: list[Verdict]
    log_p: Tensor
    scores: Scores

    @property
    def kept(self) -> int:
        """How many tokens of the block are kept."""
        return sum(verdict.accepted for verdict in self.verdicts)


def mtad(run: Run) -> Iterator[Step]:
    """Draft a block with beams, keep its longest prefix whose joint ratio P/Q exceeds τ, add one token of the target.

    At temperature 0 the warped laws are one-hot and the joint would say nothing: it is then taken under the unwarped
    laws, the draft is beam search, and the added token is the target's most probable one.

    With tree verification the target scores all beams in its one pass, and a prefix of any of them may be kept.
    """
    run.prefill(run.target, run.draft)
    while not run.finish_reason:
        run.start_step()
        tree = _draft(run)
        verified = _verify_tree(run, tree) if run.settings.tree_verification else _verify_block(run, tree)
        chosen, kept, log_p = verified.chosen, verified.kept, verified.log_p
        warped_p = run.warp(log_p)

        tokens: list[int] = [tree.nodes[node].token for node in chosen[:kept]]
        origins: list[Origin] = ["accepted"] * kept
        if not (tokens and tokens[-1] in run.eos_ids):
            tokens = [*tokens, run.streams.target.draw(warped_p[kept])]
            origins = [*origins, "bonus" if kept == len(chosen) else "sampled"]
        emitted = [
            Emitted(token=token, origin=origin, log_p=float(log_p[i, token]))
            for i, (token, origin) in enumerate(zip(tokens, origins, strict=True))
        ]
        run.draft.commit([tree.slots[node] for node in chosen[:kept] if node in tree.slots])
        log_q = _laws_along(tree, chosen)
        yield run.finish_step(
            emitted,
            record_choices(tokens, log_p, warped_p, log_q, run.warp(log_q)),
            _as_draft(tree, verified),
            verified.verdicts,
        )


def _draft(run: Run) -> BeamTree:
    settings = run.settings
    sampling = settings.draft_search == "sampling" and settings.temperature > 0
    return decode_beams(
        run.draft,
        run.pending(run.draft),
        length=settings.draft_length,
        width=settings.beam_width,
        select=draw_distinct(run.streams.draft) if sampling else most_probable,
        warp=run.warp if settings.temperature else lambda log_laws: log_laws,
        eos_ids=run.eos_ids,
    )


def _verify_block(run: Run, tree: BeamTree) -> Verified:
    """Score the draft's most probable beam, and keep its longest prefix that passes."""
    nodes = [tree.nodes[node] for node in tree.chosen]
    before = len(run.text)
    log_p = run.target.feed(run.pending(run.target) + [node.token for node in nodes], last=len(nodes) + 1)
    judged = _judged(run, log_p)
    log_ps = [float(judged[i, node.token]) for i, node in enumerate(nodes)]
    joint_log_p, joint_log_q = running_sum(log_ps), [node.joint_log_q for node in nodes]
    kept = kept_prefix(joint_log_p, joint_log_q, run.settings.threshold)
    run.target.cut(before + kept)
    scores = dict(zip(tree.chosen, zip(log_ps, joint_log_p, strict=True), strict=True))
    return Verified(tree.chosen, _verdicts(run, tree, tree.chosen, scores, joint_log_q, kept), log_p, scores)


def _verify_tree(run: Run, tree: BeamTree) -> Verified:
    """Score all nodes of the draft in one pass, and keep the path to the deepest that passes; of equals, the largest P."""
    pending, nodes = run.pending(run.target), tree.nodes
    first = len(pending)  # the text's last tokens hang on the trunk as a chain, the drafted nodes on its end
    parents = [TRUNK, *range(first - 1), *(first - 1 if node.parent is None else first + node.parent for node in nodes)]
    laws = run.target.branch([*pending, *(node.token for node in nodes)], parents)[first - 1 :]
    scores = _scores(tree, _judged(run, laws))
    depths, joint_log_q = [node.depth for node in nodes], [node.joint_log_q for node in nodes]
    best = kept_node(depths, [scores[i][1] for i in range(len(nodes))], joint_log_q, run.settings.threshold)
    chosen = tree.chosen if best is None else tree.path(tree.end_through(best))
    kept = 0 if best is None else nodes[best].depth
    run.target.commit([*range(first), *(first + node for node in chosen[:kept])])
    bar = largest_by_depth(depths, joint_log_q)
    verdicts = _verdicts(run, tree, chosen, scores, [bar[nodes[node].depth] for node in chosen], kept)
    return Verified(chosen, verdicts, laws[[0, *(1 + node for node in chosen)]], scores)


def _judged(run: Run, log_p: Tensor) -> Tensor:
    """The laws that the rule compares."""
    return run.warp(log_p) if run.settings.temperature else log_p


def _scores(tree: BeamTree, log_p: Tensor) -> Scores:
    """Each node's log p and joint log P; row 0 of `log_p` is the law after the text, row 1 + i that after node i."""
    scores: dict[int, tuple[float, float]] = {}
    for i, node in enumerate(tree.nodes):
        own = float(log_p[0 if node.parent is None else 1 + node.parent, node.token])
        scores[i] = own, own + (0.0 if node.parent is None else scores[node.parent][1])
    return scores


def _verdicts(
    run: Run, tree: BeamTree, chosen: Sequence[int], scores: Scores, bar: Sequence[float], kept: int
) -> list[Verdict]:
    """One verdict per token of the chosen block; `bar` holds the joint log Q that P is compared with at each depth."""
    threshold = run.settings.threshold
    passes = prefix_passes([scores[node][1] for node in chosen], bar, threshold)
    return [
        Verdict(
            depth=tree.nodes[node].depth,
            token=tree.nodes[node].token,
            log_p=scores[node][0],
            log_q=tree.nodes[node].log_q,
            joint_log_p=scores[node][1],
            joint_log_q=bar[i],
            uniform=None,
            threshold=threshold,
            passes=passes[i],
            accepted=i < kept,
        )
        for i, node in enumerate(chosen)
    ]


def _laws_along(tree: BeamTree, chosen: Sequence[int]) -> Tensor:
    """The draft's unwarped laws before each token of the chosen block, (block, vocabulary), and after it if it was asked."""
    return torch.stack([tree.laws[node] for node in [None, *chosen] if node in tree.laws])


def _as_draft(tree: BeamTree, verified: Verified) -> Draft:
    alive = tree.alive
    nodes = []
    for i, node in enumerate(tree.nodes):
        log_p, joint_log_p = verified.scores.get(i, (None, None))
        nodes.append(
            Node(
                parent=node.parent,
                depth=node.depth,
                token=node.token,
                log_q=node.log_q,
                joint_log_q=node.joint_log_q,
                scored=i in verified.scores,
                log_p=log_p,
                joint_log_p=joint_log_p,
                alive=i in alive,
            )
        )
    return Draft(nodes=tuple(nodes), chosen=tuple(verified.chosen))
