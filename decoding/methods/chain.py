"""Drafting a chain of tokens and checking them one by one: what speculative decoding and its relatives have in common."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Draft, Emitted, Node, Origin, Step, Verdict


@dataclass(frozen=True)
class Chain:
    """Drafted tokens and the draft's laws before each, (tokens, vocabulary), unwarped and warped."""

    tokens: list[int]
    log_q: Tensor
    warped: Tensor


Judge = Callable[[Run, Chain, Tensor], list[Verdict]]
AddToken = Callable[[Run, Chain, Tensor, int], tuple[int, Origin]]


def decode_chains(run: Run, judge: Judge, add_token: AddToken) -> Iterator[Step]:
    """Draft γ tokens, score them in one target pass, keep the accepted ones at the front, add one token of the target.

    Args:
        judge: the verdicts on a chain, one per token, given the target's warped laws (tokens + 1, vocabulary).
        add_token: the token behind the kept ones and its origin, given those laws and how many are kept. It is not asked
            where the last token kept ends the text.
    """
    run.prefill(run.target, run.draft)
    while not run.finish_reason:
        run.start_step()
        chain = _draft(run)
        before = len(run.text)
        log_p = run.target.feed(run.pending(run.target) + chain.tokens, last=len(chain.tokens) + 1)
        warped_p = run.warp(log_p)
        verdicts = judge(run, chain, warped_p)
        kept = sum(verdict.accepted for verdict in verdicts)

        tokens, origins = chain.tokens[:kept], ["accepted"] * kept
        if not (tokens and tokens[-1] in run.eos_ids):
            token, origin = add_token(run, chain, warped_p, kept)
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


def along(chain: Chain, laws: Tensor) -> list[float]:
    """The log-probability of each token of the chain under (tokens or more, vocabulary) laws."""
    return laws[torch.arange(len(chain.tokens)), torch.tensor(chain.tokens)].tolist()


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
