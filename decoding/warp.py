"""Temperature, top-k and top-p: from a model's law to the law that is sampled."""

import torch
from torch import Tensor
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from decoding.settings import DecodingSettings


def warp(log_laws: Tensor, settings: DecodingSettings) -> Tensor:
    """Apply the settings' temperature, top-k and top-p, in this order, and renormalise.

    Top-p counts the mass of the law that top-k left. Temperature 0 puts all mass on the most probable token.

    Args:
        log_laws: (rows, vocabulary) log-probabilities.

    Returns:
        (rows, vocabulary) log-probabilities, −∞ outside the support.
    """
    if settings.temperature == 0:
        return _one_hot(most_probable(log_laws), log_laws)
    no_ids = torch.empty(len(log_laws), 0, dtype=torch.long)  # these warpers do not look at the text
    warpers = LogitsProcessorList()
    if settings.temperature != 1:
        warpers.append(TemperatureLogitsWarper(float(settings.temperature)))
    if settings.top_k:
        warpers.append(TopKLogitsWarper(settings.top_k))
    laws = warpers(no_ids, log_laws)
    if settings.top_p < 1:
        # The warper sorts what it is given; only the support needs it, and that is small after top-k.
        support, ids = laws.topk(int(laws.isfinite().sum(-1).max()))
        kept = TopPLogitsWarper(settings.top_p)(no_ids, support)
        laws = torch.full_like(laws, -torch.inf).scatter(-1, ids, kept)
    return laws.log_softmax(-1)


def most_probable(log_laws: Tensor) -> Tensor:
    """The most probable token of each row, (rows,); of equals, the lowest id (`argmax` leaves that open)."""
    ids = torch.arange(log_laws.shape[-1], device=log_laws.device).expand_as(log_laws)
    is_top = log_laws == log_laws.amax(-1, keepdim=True)
    return ids.masked_fill(~is_top, log_laws.shape[-1]).amin(-1)


def _one_hot(tokens: Tensor, like: Tensor) -> Tensor:
    return torch.full_like(like, -torch.inf).scatter(-1, tokens.unsqueeze(-1), 0.0)
