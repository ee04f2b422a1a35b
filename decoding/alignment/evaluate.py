"""Evaluation: how often a draft agrees with its target, on conversations that it was not trained on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from decoding.alignment.data import ANSWER, Conversations
from decoding.alignment.support import warp_support
from decoding.settings import DecodingSettings

ROWS_AT_ONCE = 4


@dataclass(frozen=True)
class Agreement:
    """How a draft does beside its target, each a mean over the positions of the target's answers.

    Attributes:
        acceptance_rate: α = mean Σ min(p̃, q̃).
        reach: mass of p̃ on the tokens that the draft can say at all: what α is bounded by.
    """

    acceptance_rate: float
    reach: float


def overlap_and_reach(log_p: Tensor, log_q: Tensor, settings: DecodingSettings) -> tuple[Tensor, Tensor]:
    """Σ min(p̃, q̃), and the mass of p̃ where q is not 0: both (positions,), from (positions, vocabulary) log-laws."""
    p, ids = warp_support(log_p, settings)
    q, q_ids = warp_support(log_q, settings)
    q_everywhere = torch.full_like(log_q, -torch.inf).scatter(-1, q_ids, q)
    overlap = torch.minimum(p, q_everywhere.gather(-1, ids)).exp().sum(-1)
    reach = p.masked_fill(log_q.gather(-1, ids) == -torch.inf, -torch.inf).exp().sum(-1)
    return overlap, reach


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


def agreement(
    draft: PreTrainedModel, head: Tensor, data: Conversations, settings: Sequence[DecodingSettings]
) -> list[Agreement]:
    """The agreement of draft and target under each of the settings."""
    sums = torch.zeros(len(settings), 2, dtype=torch.float64)
    positions = 0
    for log_p, log_q in answer_laws(draft, head, data):
        positions += len(log_p)
        for at, chosen in enumerate(settings):
            sums[at] += torch.stack(overlap_and_reach(log_p, log_q, chosen)).sum(-1).cpu()
    return [Agreement(*means) for means in (sums / positions).tolist()]


@torch.inference_mode()
def mean_law(head: Tensor, data: Conversations) -> Tensor:
    """(vocabulary,) the target's mean law over the positions of its answers: how often it would write each token."""
    answers = data.writers[:, 1:] == ANSWER
    hidden, log_normaliser = data.hidden[answers], data.log_normaliser[answers]
    total = torch.zeros(len(head))
    for some, normaliser in zip(hidden.split(256), log_normaliser.split(256), strict=True):
        total += (some.to(head.device).float() @ head.T - normaliser.to(head.device)[:, None]).exp().sum(0).cpu()
    return total / len(hidden)
