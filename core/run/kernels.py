"""Which of a processor's kernels compute a run: those of AVX2, wherever a processor has them."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

# What torch, oneDNN and MKL read when they load. Wider vectors, and MKL's own choice for each
# maker's processors, take sums in another order, and now and then another token is sampled.
PINS = {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"}
PINNED = "AVX2"  # as torch names it
AVX512 = {"avx512vl", "avx512bw", "avx512dq", "fma"}  # what a processor needs for torch to use it
CPU_INFO = Path("/proc/cpuinfo")
PROCESSOR = "processor"  # whose name stands beside the kernels: bits differ between makers


def pin_kernels() -> None:
    """Set the environment so that torch, once loaded, computes with AVX2, here and in children.

    A variable that is set stays, a processor without AVX2 keeps its own kernels, and `repro bench`
    measures a processor as it is. Where torch is loaded already, children compute as it does.
    """
    if "bench" in sys.argv[1:2]:
        return
    if "torch" in sys.modules:
        os.environ.setdefault("ATEN_CPU_CAPABILITY", kernel_path().lower())
    elif "avx2" in processor_flags():
        for name, value in PINS.items():
            os.environ.setdefault(name, value)


def kernel_path() -> str:
    """Return the vector instructions of torch's kernels: AVX512, AVX2 or DEFAULT.

    Before torch is loaded, return those that it will choose.
    """
    if "torch" in sys.modules:
        torch: Any = sys.modules["torch"]
        return torch.backends.cpu.get_cpu_capability()
    chosen = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    if chosen in ("AVX512", PINNED, "DEFAULT"):
        return chosen
    flags = processor_flags()
    if flags >= AVX512:
        return "AVX512"
    return PINNED if {"avx2", "fma"} <= flags else "DEFAULT"


def kernels() -> dict[str, str]:
    """Return the processor, the variables that were set, and the path that torch computes with."""
    asked = {name: os.environ.get(name, "not set") for name in PINS}
    return {**asked, "torch": kernel_path(), PROCESSOR: processor_name()}


def kernel_key() -> dict[str, str]:
    """Return what a training's key says of its kernels: nothing of the pinned ones."""
    path = kernel_path()
    return {} if path == PINNED else {"kernels": path}


def processor_flags() -> set[str]:
    """Return the instruction sets that Linux lists of the first processor; empty elsewhere."""
    return set(processor_line("flags").split())


def processor_name() -> str:
    """Return maker and model of the first processor, elsewhere than on Linux the architecture."""
    maker, model = processor_line("vendor_id"), processor_line("model name")
    return f"{maker} {model}".strip() or platform.machine()


def processor_line(name: str) -> str:
    """Return the value of the first line of this name in `/proc/cpuinfo`; empty without one."""
    if not CPU_INFO.is_file():
        return ""
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    values = (line.partition(":")[2].strip() for line in lines if line.split("\t")[0] == name)
    return next(values, "")
