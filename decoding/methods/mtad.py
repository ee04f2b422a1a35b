"""MTAD, multi-token assisted decoding: the draft's best block, kept as far as its joint probability allows.

Qin et al., ICLR 2025, "Optimized Multi-Token Joint Decoding with Auxiliary Model for LLM Inference". Not lossless: it
trades the target's law of single tokens for blocks of higher joint probability.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from decoding.methods.acceptance import kept_prefix, prefix_passes, running_sum
from decoding.methods.beams import BeamTree, decode_beams, draw_distinct, most_probable
from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Draft, Emitted, Node, Origin, Step, Verdict


def mtad(run: Run) -> Iterator[Step]:
    """Draft a block with beams, keep its longest prefix whose joint ratio P/Q exceeds τ, add one token of the target.

    At temperature 0 the warped laws are one-hot and the joint would say nothing: it is then taken under the unwarped
    laws, the draft is beam search, and the added token is the target's most probable one.
    """
    run.prefill(run.target, run.draft)
    while not run.finish_reason:
        run.start_step()
        tree = _draft(run)
        block = [tree.nodes[node].token for node in tree.chosen]
        before = len(run.text)
        log_p = run.target.feed(run.pending(run.target) + block, last=len(block) + 1)
        warped_p = run.warp(log_p)
        verdicts = _judge(run, tree, warped_p if run.settings.temperature else log_p)
        kept = sum(verdict.accepted for verdict in verdicts)

        tokens: list[int] = block[:kept]
        origins: list[Origin] = ["accepted"] * kept
        if not (tokens and tokens[-1] in run.eos_ids):
            tokens = [*tokens, run.streams.target.draw(warped_p[kept])]
            origins = [*origins, "bonus" if kept == len(block) else "sampled"]
        emitted = [
            Emitted(token=token, origin=origin, log_p=float(log_p[i, token]))
            for i, (token, origin) in enumerate(zip(tokens, origins, strict=True))
        ]
        run.target.cut(before + kept)
        run.draft.commit([tree.slots[node] for node in tree.chosen[:kept] if node in tree.slots])
        log_q = _laws_along(tree)
        yield run.finish_step(
            emitted,
            record_choices(tokens, log_p, warped_p, log_q, run.warp(log_q)),
            _as_draft(tree, verdicts),
            verdicts,
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


def _judge(run: Run, tree: BeamTree, log_p: Tensor) -> list[Verdict]:
    """One verdict per token of the chosen block; `log_p` is (block + 1, vocabulary)."""
    nodes = [tree.nodes[node] for node in tree.chosen]
    log_ps = [float(log_p[i, node.token]) for i, node in enumerate(nodes)]
    joint_log_p = running_sum(log_ps)
    joint_log_q = [node.joint_log_q for node in nodes]
    passes = prefix_passes(joint_log_p, joint_log_q, run.settings.threshold)
    kept = kept_prefix(joint_log_p, joint_log_q, run.settings.threshold)
    return [
        Verdict(
            depth=node.depth,
            token=node.token,
            log_p=log_ps[i],
            log_q=node.log_q,
            joint_log_p=joint_log_p[i],
            joint_log_q=node.joint_log_q,
            uniform=None,
            threshold=run.settings.threshold,
            passes=passes[i],
            accepted=i < kept,
        )
        for i, node in enumerate(nodes)
    ]


def _laws_along(tree: BeamTree) -> Tensor:
    """The draft's unwarped laws before each token of the chosen block, (block, vocabulary), and after it if it was asked."""
    return torch.stack([tree.laws[node] for node in [None, *tree.chosen] if node in tree.laws])


def _as_draft(tree: BeamTree, verdicts: Sequence[Verdict]) -> Draft:
    alive = tree.alive
    scored = dict(zip(tree.chosen, verdicts, strict=True))
    nodes = [
        Node(
            parent=node.parent,
            depth=node.depth,
            token=node.token,
            log_q=node.log_q,
            joint_log_q=node.joint_log_q,
            scored=i in scored,
            log_p=scored[i].log_p if i in scored else None,
            joint_log_p=scored[i].joint_log_p if i in scored else None,
            alive=i in alive,
        )
        for i, node in enumerate(tree.nodes)
    ]
    return Draft(nodes=tuple(nodes), chosen=tuple(tree.chosen))
