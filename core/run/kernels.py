"""Which of a processor's kernels compute a run: at the smallest scale the same ones everywhere."""

import os
import sys
from pathlib import Path

from core.families.profiles import SCALES

# What torch, oneDNN and MKL read when they load. Wider vectors, and MKL's own choice for each
# maker's processors, take sums in another order, and now and then another token is sampled.
KERNELS = {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"}
PROCESSOR = Path("/proc/cpuinfo")


def ask_for_kernels(scale: str) -> None:
    """Ask for one kernel path, before torch loads; what somebody has set stays.

    A processor without AVX2 keeps its own.
    """
    if scale != SCALES[0] or "torch" in sys.modules or not PROCESSOR.is_file():
        return
    if " avx2 " in PROCESSOR.read_text(encoding="utf-8", errors="replace"):
        for name, value in KERNELS.items():
            os.environ.setdefault(name, value)


def kernels() -> dict[str, str]:
    """What was asked for, and what torch says came of it."""
    import torch

    asked = {name: os.environ.get(name, "not set") for name in KERNELS}
    return {**asked, "torch": torch.backends.cpu.get_cpu_capability()}
