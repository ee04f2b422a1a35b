"""Cost: what one pass of a draft takes beside one pass of its target, in the code path of the methods."""

import time
from collections.abc import Callable, Sequence

from decoding.language_model import LanguageModel

ANY_TOKEN = 5


def pass_seconds(
    models: Sequence[LanguageModel], context_length: int, repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Least seconds of a one-token pass behind `context_length` tokens, for each model.

    The least, since whatever else the machine does can only add to it; the models take turns, for the same reason.

    Args:
        clock: `time.process_time` counts the seconds that processors spent on it, which is fairer on a busy machine.
    """
    contexts = [model.open() for model in models]
    seconds: list[list[float]] = [[] for _ in models]
    for context in contexts:
        context.feed([ANY_TOKEN] * context_length)
    for _ in range(repeats):
        for context, times in zip(contexts, seconds, strict=True):
            began = clock()
            context.feed([ANY_TOKEN])
            times.append(clock() - began)
            context.cut(context_length)
    return [min(times) for times in seconds]
