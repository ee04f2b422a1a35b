"""Evaluation: how often a draft agrees with its target, on conversations that it was not trained on."""

from collections.abc import Iterator

import torch
from torch import Tensor
from transformers import PreTrainedModel

from decoding.alignment.data import ANSWER, Conversations
from decoding.settings import DecodingSettings
from decoding.warp import warp

ROWS_AT_ONCE = 4


def overlap(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Σ min(p, q) of each position, (positions,), from (positions, vocabulary) log-laws."""
    return torch.minimum(log_p, log_q).exp().sum(-1)


@torch.inference_mode()
def answer_laws(draft: PreTrainedModel, head: Tensor, data: Conversations) -> Iterator[tuple[Tensor, Tensor]]:
    """Unwarped log-laws of target and draft at the positions of the target's answers, some conversations at a time.

    Args:
        head: (vocabulary, width), the target's.

    Yields:
        two tensors (positions, vocabulary).
    """
    for some in torch.arange(len(data)).split(ROWS_AT_ONCE):
        batch = data.select(some).to(draft.device)
        answers = batch.writers[:, 1:] == ANSWER
        log_q = draft(batch.tokens[:, :-1].long(), use_cache=False).logits[answers].log_softmax(-1)
        yield (batch.hidden[answers].float() @ head.T).log_softmax(-1), log_q


def acceptance_rate(
    draft: PreTrainedModel, head: Tensor, data: Conversations, settings: list[DecodingSettings]
) -> list[float]:
    """α = mean Σ min(p̃, q̃) over the positions of the target's answers, for each of the settings."""
    sums = torch.zeros(len(settings), dtype=torch.float64)
    positions = 0
    for log_p, log_q in answer_laws(draft, head, data):
        positions += len(log_p)
        for at, chosen in enumerate(settings):
            sums[at] += overlap(warp(log_p, chosen), warp(log_q, chosen)).sum().cpu()
    return (sums / positions).tolist()


@torch.inference_mode()
def head_mass(head_ids: Tensor, head: Tensor, data: Conversations) -> float:
    """Mean mass of the target's own law on the tokens that a restricted head can say, at the positions of its answers."""
    answers = data.writers[:, 1:] == ANSWER
    hidden, log_normaliser = data.hidden[answers], data.log_normaliser[answers]
    masses = [
        (some.float() @ head[head_ids].T).logsumexp(-1) - normaliser
        for some, normaliser in zip(hidden.split(1024), log_normaliser.split(1024), strict=True)
    ]
    return float(torch.cat(masses).exp().mean())
