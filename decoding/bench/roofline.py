"""The least time that a forward pass can take on this machine: its weights must be read, and its products computed.

Williams et al. 2009, "Roofline: An Insightful Visual Performance Model". The machine's two rates are measured, not looked up.
"""

import time
from collections.abc import Callable

import torch
from pydantic import BaseModel, ConfigDict, Field

READ_BYTES = 256 * 1024 * 1024  # far more than any cache holds
MATRIX = 1024
ROUNDS = 5


class Rates(BaseModel):
    """What a machine can do at most, as measured.

    Attributes:
        bytes_per_second: read from memory.
        flops_per_second: of a product of float32 matrices (half precision on a GPU).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes_per_second: float = Field(gt=0)
    flops_per_second: float = Field(gt=0)


def measure_rates(device: torch.device) -> Rates:
    """Measure both rates: the best of a few rounds of each."""
    dtype = torch.float32 if device.type == "cpu" else torch.float16
    flat = torch.ones(READ_BYTES // 4, dtype=torch.float32, device=device)
    square = torch.ones(MATRIX, MATRIX, dtype=dtype, device=device)
    return Rates(
        bytes_per_second=READ_BYTES / _best(flat.sum, device),
        flops_per_second=2 * MATRIX**3 / _best(lambda: square @ square, device),
    )


def _best(act: Callable[[], object], device: torch.device) -> float:
    seconds = []
    for _ in range(ROUNDS + 1):  # the first one warms up
        started = time.perf_counter()
        act()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


def floor_seconds(rates: Rates, weight_bytes: int, parameters: int, tokens: float) -> float:
    """The roofline's floor of a pass over `tokens` tokens: whichever takes longer, reading weights or computing with them.

    An estimate from below: reading the cache and the attention over it are left out.

    >>> floor_seconds(Rates(bytes_per_second=1e9, flops_per_second=1e12), 500_000_000, 10, tokens=1)
    0.5
    """
    return max(weight_bytes / rates.bytes_per_second, flops(parameters, tokens) / rates.flops_per_second)


def flops(parameters: int, tokens: float) -> float:
    """Floating-point operations of a pass, estimated: one multiplication and one addition per weight and token."""
    return 2.0 * parameters * tokens
