"""Cost: what one pass of a draft takes beside one pass of its target, in the same code path."""

import statistics
import time
from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel


@torch.inference_mode()
def pass_seconds(models: Sequence[PreTrainedModel], context: int, repeats: int) -> list[float]:
    """Median wall-clock seconds of a one-token pass with `context` tokens in the cache, for each model.

    The models take turns, so that what else the machine does meets all of them alike.
    """
    seconds: list[list[float]] = [[] for _ in models]
    caches = [DynamicCache(config=model.config) for model in models]
    for model, cache in zip(models, caches, strict=True):
        model(torch.full((1, context), 5, device=model.device), cache=cache, use_cache=True)
    for _ in range(repeats):
        for model, cache, times in zip(models, caches, seconds, strict=True):
            began = time.perf_counter()
            model(torch.full((1, 1), 5, device=model.device), cache=cache, use_cache=True).logits.sum().item()
            times.append(time.perf_counter() - began)
            cache.crop(-1)
    return [statistics.median(times) for times in seconds]
