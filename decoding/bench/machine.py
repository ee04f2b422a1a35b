"""What a bench ran on."""

import os
import platform
import resource
import sys
from datetime import date
from pathlib import Path

import torch
import transformers

from decoding.bench.record import Machine


def this_machine(device: torch.device, processes: int = 1) -> Machine:
    """The machine, today, with the memory that this process has needed at most so far."""
    return Machine(
        date=date.today().isoformat(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU",
        python=platform.python_version(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        processes=processes,
        peak_rss_bytes=_peak_rss(),
    )


def _peak_rss() -> int:
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()
