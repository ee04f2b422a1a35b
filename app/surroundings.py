"""Where the page runs: on a ZeroGPU Space, which lends a GPU to one call at a time, or on a machine of its own."""

import os
from collections.abc import Callable, Generator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in {"1", "t", "true"}

if ZERO_GPU:
    import spaces  # patches torch, so it comes before it


def on_gpu(duration: Callable[P, int]) -> Callable[[Callable[P, Generator[T]]], Callable[P, Generator[T]]]:
    """Decorate a generator that needs the GPU.

    On ZeroGPU it runs in a forked worker: arguments and what it yields are pickled, and a change to a global stays there.

    Args:
        duration: from the call's arguments to the most seconds it may take; short calls wait less for a GPU.
    """
    return spaces.GPU(duration=duration) if ZERO_GPU else lambda generator: generator
