"""The thread policy, in a process of its own: torch counts threads once for all."""

import os
import subprocess
import sys

COUNT = "import torch; free = torch.get_num_threads(); from decoding.threads import leave_a_core; print(free, leave_a_core(), torch.get_num_threads())"


def counts(**environment: str) -> list[int]:
    inherited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    shown = subprocess.run([sys.executable, "-c", COUNT], env=inherited | environment, capture_output=True, check=True)
    return [int(number) for number in shown.stdout.split()]


def test_one_core_is_left_free_but_never_all():
    free, said, left = counts()
    assert said == left == max(1, free - 1)


def test_a_number_of_threads_that_was_asked_for_is_heeded():
    assert counts(OMP_NUM_THREADS="2") == [2, 2, 2]
