"""Speculative decoding: the draft proposes a chain, the target checks it token by token, the law stays the target's.

Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"; Chen et al. 2023, "Accelerating
Large Language Model Decoding with Speculative Sampling".
"""

from collections.abc import Iterator

from torch import Tensor

from decoding.methods.acceptance import acceptance_probability, residual, running_sum
from decoding.methods.chain import Chain, along, decode_chains
from decoding.run import Run
from decoding.trace import Origin, Step, Verdict


def speculative(run: Run) -> Iterator[Step]:
    """Draft γ tokens, accept each with probability min(1, p̃/q̃), and replace the first refused one.

    If all are accepted, one more token comes from the target for free.
    """
    return decode_chains(run, _judge, _add_token)


def _judge(run: Run, chain: Chain, warped_p: Tensor) -> list[Verdict]:
    """The verdicts up to the first refusal, and the untested tokens behind it."""
    log_p, log_q = along(chain, warped_p), along(chain, chain.warped)
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


def _add_token(run: Run, chain: Chain, warped_p: Tensor, kept: int) -> tuple[int, Origin]:
    if kept == len(chain.tokens):
        return run.streams.target.draw(warped_p[kept]), "bonus"
    return run.streams.target.draw(residual(warped_p[kept], chain.warped[kept])), "resampled"
