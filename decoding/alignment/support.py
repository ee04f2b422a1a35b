"""Warped laws on their support alone: what top-k drops need not be carried through thousands of positions."""

import torch
from torch import Tensor

from decoding.settings import DecodingSettings
from decoding.warp import warp


def warp_support(log_laws: Tensor, settings: DecodingSettings) -> tuple[Tensor, Tensor]:
    """The warp of (rows, vocabulary) log-laws: log-probabilities and token ids, both (rows, top-k or vocabulary)."""
    vocabulary = log_laws.shape[-1]
    if not settings.top_k or settings.top_k >= vocabulary:
        return warp(log_laws, settings), torch.arange(vocabulary, device=log_laws.device).expand_as(log_laws)
    kept, ids = log_laws.topk(settings.top_k)
    return warp(kept, settings), ids
