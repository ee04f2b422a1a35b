"""Energy from hardware counters, through zeus: GPUs by NVML, processors by RAPL. Where there is none, it is not measured."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LOG = logging.getLogger(__name__)


@dataclass
class Span:
    """A span of time; `joules` is known after its end, and stays None where nothing can measure it."""

    joules: float | None = None


class EnergyMeter:
    """Measures the energy that all GPUs, and processors with counters, take during a span.

    Attributes:
        counts: what is counted, such as "1 GPU", or why nothing is.
    """

    def __init__(self) -> None:
        self._monitor, self.counts = _find_monitor()

    @contextmanager
    def span(self) -> Iterator[Span]:
        """Measure what happens inside."""
        span = Span()
        if self._monitor is None:
            yield span
            return
        self._monitor.begin_window("span")
        try:
            yield span
        finally:
            measured = self._monitor.end_window("span")
            parts = [*measured.gpu_energy.values(), *(measured.cpu_energy or {}).values()]
            span.joules = float(sum(parts))


def _find_monitor() -> tuple[Any | None, str]:
    try:
        from zeus.monitor import ZeusMonitor
    except ImportError:
        return None, "not measured: zeus is not installed"
    try:
        monitor = ZeusMonitor(approx_instant_energy=True)
    except Exception as error:  # zeus has an exception of its own for each driver
        LOG.debug("No energy counter", exc_info=True)
        return None, f"not measured: {type(error).__name__}"
    gpus, processors = len(monitor.gpu_indices), len(monitor.cpu_indices)
    return (
        (monitor, f"{gpus} GPUs, {processors} processors") if gpus + processors else (None, "not measured: no counter")
    )
