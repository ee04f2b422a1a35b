"""Temperature, top-k and top-p: from a model's law to the law that is sampled."""

import torch
from torch import Tensor
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

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
    laws = log_laws
    if settings.temperature != 1:
        laws = TemperatureLogitsWarper(float(settings.temperature))(no_ids, laws)
    if not settings.top_k and settings.top_p == 1:
        return laws.log_softmax(-1)
    support, ids = _top_k(laws, settings.top_k)
    if settings.top_p < 1:
        support = TopPLogitsWarper(settings.top_p)(no_ids, support)
    return torch.full_like(laws, -torch.inf).scatter(-1, ids, support.log_softmax(-1))


def _top_k(laws: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and whatever equals the last of them, sorted, with their ids; all if k is 0.

    All that follows works on these few. Rows with fewer are filled up with −∞; equals all stay, as transformers' warper has it.
    """
    size = laws.shape[-1]
    support, ids = laws.topk(min(k or size, size))
    last = support[..., -1:]
    widest = int((laws >= last).sum(-1).max()) if k else size
    if widest > support.shape[-1]:
        support, ids = laws.topk(widest)
        support = support.masked_fill(support < last, -torch.inf)
    return support, ids


def most_probable(log_laws: Tensor) -> Tensor:
    """The most probable token of each row, (rows,); of equals, the lowest id (`argmax` leaves that open)."""
    ids = torch.arange(log_laws.shape[-1], device=log_laws.device).expand_as(log_laws)
    is_top = log_laws == log_laws.amax(-1, keepdim=True)
    return ids.masked_fill(~is_top, log_laws.shape[-1]).amin(-1)


def _one_hot(tokens: Tensor, like: Tensor) -> Tensor:
    return torch.full_like(like, -torch.inf).scatter(-1, tokens.unsqueeze(-1), 0.0)
