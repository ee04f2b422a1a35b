"""Speculative decoding: the draft proposes a chain, the target checks it token by token, the law stays the target's.

Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"; Chen et al. 2023, "Accelerating
Large Language Model Decoding with Speculative Sampling".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from decoding.methods.acceptance import acceptance_probability, residual, running_sum
from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Draft, Emitted, Node, Origin, Step, Verdict


@dataclass(frozen=True)
class Chain:
    """Drafted tokens and the draft's laws before each, (tokens, vocabulary), unwarped and warped."""

    tokens: list[int]
    log_q: Tensor
    warped: Tensor


def speculative(run: Run) -> Iterator[Step]:
    """Draft γ tokens, accept each with probability min(1, p̃/q̃), and replace the first refused one.

    If all are accepted, one more token comes from the target for free.
    """
    run.prefill(run.target, run.draft)
    while not run.finish_reason:
        run.start_step()
        chain = _draft(run)
        before = len(run.text)
        log_p = run.target.feed(run.pending(run.target) + chain.tokens, last=len(chain.tokens) + 1)
        warped_p = run.warp(log_p)
        verdicts = _judge(run, chain, warped_p)
        kept = sum(verdict.accepted for verdict in verdicts)

        tokens, origins = chain.tokens[:kept], ["accepted"] * kept
        if not (tokens and tokens[-1] in run.eos_ids):
            token, origin = _next_token(run, chain, warped_p, kept)
            tokens, origins = [*tokens, token], [*origins, origin]
        emitted = [
            Emitted(token=token, origin=origin, log_p=float(log_p[i, token]))
            for i, (token, origin) in enumerate(zip(tokens, origins, strict=True))
        ]
        run.target.cut(before + kept)
        run.draft.cut(min(len(run.draft.tokens), before + kept))
        yield run.finish_step(
            emitted,
            record_choices(tokens, log_p, warped_p, chain.log_q, chain.warped),
            _as_draft(chain, verdicts),
            verdicts,
        )


def _draft(run: Run) -> Chain:
    """Sample up to γ tokens from the draft, one pass each; nothing is drafted after an end of text."""
    tokens: list[int] = []
    laws: list[Tensor] = []
    warped_laws: list[Tensor] = []
    while len(tokens) < run.settings.draft_length and not (tokens and tokens[-1] in run.eos_ids):
        law = run.draft.feed(tokens[-1:] or run.pending(run.draft))
        warped = run.warp(law)
        laws.append(law)
        warped_laws.append(warped)
        tokens.append(run.streams.draft.draw(warped[0]))
    return Chain(tokens, torch.cat(laws), torch.cat(warped_laws))


def _judge(run: Run, chain: Chain, warped_p: Tensor) -> list[Verdict]:
    """The verdicts up to the first refusal, and the untested tokens behind it."""
    index = torch.arange(len(chain.tokens)), torch.tensor(chain.tokens)
    log_p, log_q = warped_p[:-1][index].tolist(), chain.warped[index].tolist()
    joint_log_p, joint_log_q = running_sum(log_p), running_sum(log_q)
    verdicts: list[Verdict] = []
    for i, token in enumerate(chain.tokens):
        refused = bool(verdicts) and not verdicts[-1].accepted
        bar = acceptance_probability(log_p[i], log_q[i])
        uniform = None if refused else run.streams.acceptance.uniform(split=bar)
        accepted = uniform is not None and uniform < bar
        verdict = Verdict(
            depth=i + 1,
            token=token,
            log_p=log_p[i],
            log_q=log_q[i],
            joint_log_p=joint_log_p[i],
            joint_log_q=joint_log_q[i],
            uniform=uniform,
            threshold=None,
            passes=accepted,
            accepted=accepted,
        )
        verdicts.append(verdict)
    return verdicts


def _next_token(run: Run, chain: Chain, warped_p: Tensor, kept: int) -> tuple[int, Origin]:
    if kept == len(chain.tokens):
        return run.streams.target.draw(warped_p[kept]), "bonus"
    return run.streams.target.draw(residual(warped_p[kept], chain.warped[kept])), "resampled"


def _as_draft(chain: Chain, verdicts: Sequence[Verdict]) -> Draft:
    nodes = [
        Node(
            parent=i - 1 if i else None,
            depth=verdict.depth,
            token=verdict.token,
            log_q=verdict.log_q,
            joint_log_q=verdict.joint_log_q,
            scored=True,
            log_p=verdict.log_p,
            joint_log_p=verdict.joint_log_p,
            alive=True,
        )
        for i, verdict in enumerate(verdicts)
    ]
    return Draft(nodes=tuple(nodes), chosen=tuple(range(len(nodes))))
