"""Forced tokens: a text that begins with given tokens, whatever a method would have written. So a run branches off another."""

import time
from collections.abc import Iterator, Sequence

import torch

from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Emitted, Step


def forced(run: Run, tokens: Sequence[int]) -> Iterator[Step]:
    """One step with the tokens and the laws they stand in place of; no step if there are none.

    To be run before the method. The tokens are fed like the prompt, so the step costs nothing and its seconds are prefill.
    """
    if not tokens:
        return
    started = time.perf_counter()
    log_p = run.target.feed([*run.text, *tokens[:-1]], last=len(tokens))
    run.prefill_seconds += time.perf_counter() - started
    log_ps = log_p.gather(-1, torch.tensor(tokens, device=log_p.device)[:, None])[:, 0].tolist()
    emitted = [Emitted(token=token, origin="forced", log_p=value) for token, value in zip(tokens, log_ps, strict=True)]
    choices = record_choices(tokens, log_p, run.warp(log_p))
    run.start_step()
    yield run.finish_step(emitted, choices)
