"""How many threads compute."""

import os

import torch


def leave_a_core() -> int:
    """Compute on one core fewer than there are, and say on how many; `OMP_NUM_THREADS` is heeded where it is set.

    Passes of few tokens wait for memory, so that one core of two does most of their work. The threads of one pass wait for
    each other by spinning: if anything else takes their core, such as the server that shows the text, each pass takes
    several times as long. A core left free costs less than that.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    return torch.get_num_threads()
