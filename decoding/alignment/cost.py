"""Cost: what one pass of a draft takes beside one pass of its target, in the code path of the methods."""

import time
from collections.abc import Sequence

from decoding.language_model import LanguageModel

ANY_TOKEN = 5


def pass_seconds(models: Sequence[LanguageModel], context_length: int, repeats: int) -> list[float]:
    """Least wall-clock seconds of a one-token pass behind `context_length` tokens, for each model.

    The least, since whatever else the machine does can only add to it; the models take turns, for the same reason.
    """
    contexts = [model.open() for model in models]
    seconds: list[list[float]] = [[] for _ in models]
    for context in contexts:
        context.feed([ANY_TOKEN] * context_length)
    for _ in range(repeats):
        for context, times in zip(contexts, seconds, strict=True):
            began = time.perf_counter()
            context.feed([ANY_TOKEN])
            times.append(time.perf_counter() - began)
            context.cut(context_length)
    return [min(times) for times in seconds]
