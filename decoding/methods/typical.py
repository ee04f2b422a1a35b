"""Typical acceptance: a drafted token is kept if the target finds it likely enough, whatever the draft thought of it.

Cai et al. 2024, "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads", section 2.3.1, on a
draft model's chain. Not lossless: whatever exceeds a threshold is kept, however often the draft proposes it.
"""

import math
from collections.abc import Iterator

from torch import Tensor

from decoding.methods.acceptance import running_sum, typical_bar
from decoding.methods.chain import Chain, along, decode_chains
from decoding.methods.choices import law_entropy
from decoding.run import Run
from decoding.trace import Origin, Step, Verdict


def typical(run: Run) -> Iterator[Step]:
    """Draft γ tokens, keep each while p̃ > min(τ, √τ · exp(−H(p̃))), and add one token of the target."""
    return decode_chains(run, _judge, _add_token)


def _judge(run: Run, chain: Chain, warped_p: Tensor) -> list[Verdict]:
    log_p, log_q = along(chain, warped_p), along(chain, chain.warped)
    joint_log_p, joint_log_q = running_sum(log_p), running_sum(log_q)
    entropies = law_entropy(warped_p)
    verdicts: list[Verdict] = []
    for i, token in enumerate(chain.tokens):
        bar = typical_bar(entropies[i], run.settings.threshold)
        passes = math.exp(log_p[i]) > bar
        verdict = Verdict(
            depth=i + 1,
            token=token,
            log_p=log_p[i],
            log_q=log_q[i],
            joint_log_p=joint_log_p[i],
            joint_log_q=joint_log_q[i],
            uniform=None,
            threshold=bar,
            passes=passes,
            accepted=passes and all(earlier.accepted for earlier in verdicts),
        )
        verdicts.append(verdict)
    return verdicts


def _add_token(run: Run, chain: Chain, warped_p: Tensor, kept: int) -> tuple[int, Origin]:
    return run.streams.target.draw(warped_p[kept]), "bonus" if kept == len(chain.tokens) else "sampled"
