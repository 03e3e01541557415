"""The CPU kernels of torch: chosen once for all processes, and a digest of how they round."""

import json
import os
import platform
import sys
from contextlib import suppress
from ctypes import CDLL
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from platformdirs import user_cache_path

from eval.errors import BadValue
from eval.terminal import say
from eval.whole_files import write_whole

# What torch, oneDNN and MKL read when they load. Wider vectors, and MKL's own choice for each
# maker's processors, take sums in another order, and now and then another token is sampled.
KERNELS = {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"}
CPU_INFO = Path("/proc/cpuinfo")
PROCESSOR = "processor"  # whose name a record has beside the kernels
BRANCHES = {1: "off", 2: "auto", 3: "compatible", 9: "AVX", 10: "AVX2", 12: "AVX512"}  # of MKL
LIBRARY = Path("lib") / "libtorch_cpu.so"  # in the folder of torch
PROCESSOR_FIELDS = ("vendor_id", "cpu family", "model", "stepping", "microcode", "flags")
# Beginnings of the names of environment variables by which kernels are chosen.
VARIABLES = (
    *("ATEN_", "DNNL_", "GLIBC_", "GOMP_", "KMP_"),
    *("LD_", "MKL_", "OMP_", "ONEDNN_", "TORCH_"),
)
ROUNDING = 12  # characters of the digest of rounded results


def pin_kernels() -> None:
    """Set the kernel path for this process and its children, unless the environment sets one.

    The choice acts only before torch loads. If torch is loaded already, children get the path of
    this process. A processor without AVX2 keeps its own path, and `repro bench` measures the
    processor as it is.
    """
    if " avx2 " not in processor_text() or "bench" in sys.argv[1:2]:
        return
    if "torch" in sys.modules:
        os.environ.setdefault("ATEN_CPU_CAPABILITY", torch_path().lower())
    elif os.environ.get("ATEN_CPU_CAPABILITY", "avx2").lower() == "avx2":
        for name, value in KERNELS.items():
            os.environ.setdefault(name, value)


@lru_cache(maxsize=1)
def advise_on_bfloat16() -> None:
    """Print once that the kernel path has no bfloat16, whose products are then computed one by one.

    On a processor with AMX a product of two matrices took 20 to 160 times as long as with
    DNNL_MAX_CPU_ISA=AVX512_CORE_BF16.
    """
    if os.environ.get("DNNL_MAX_CPU_ISA") == KERNELS["DNNL_MAX_CPU_ISA"]:
        say(
            "bfloat16 is slow with the kernels that all CPUs share: set bf16=false (`repro eval "
            "--dtype float32`), or, if the flags of the CPU include avx512_bf16, the environment "
            "variable DNNL_MAX_CPU_ISA=AVX512_CORE_BF16"
        )


def check_kernels() -> None:
    """Check that torch computes with the kernels that the environment asks for.

    Raises:
        BadValue: torch was loaded before they were chosen, or does not have them.
    """
    expected, actual = os.environ.get("ATEN_CPU_CAPABILITY"), torch_path()
    if expected is not None and expected.lower() != actual.lower():
        raise BadValue(
            f"ATEN_CPU_CAPABILITY={expected}, but torch computes with {actual}: expected a path "
            "that this processor has, chosen before torch is loaded; set it before Python starts"
        )


@lru_cache(maxsize=1)
def acting_kernels() -> dict[str, str]:
    """Return torch's and MKL's kernel paths that act here, and a digest of how they round.

    A process that has not loaded torch reads them from the user's cache if a process measured them
    before under the same `conditions`; else it loads torch, measures and writes them.
    """
    if "torch" in sys.modules:  # by whatever environment it was loaded
        return measured_kernels()
    path = user_cache_path("repro-papers") / "kernels" / conditions()
    kernels = read_kernels(path)
    if kernels is None:
        kernels = measured_kernels()
        with suppress(OSError):  # then the next process measures again
            write_whole(path, json.dumps(kernels).encode())
    return kernels


def conditions() -> str:
    """Return a digest of all that the kernels depend on: torch, processor and environment."""
    spec = find_spec("torch")
    library = Path(spec.origin if spec and spec.origin else "").parent / LIBRARY
    file = library.stat() if library.is_file() else None
    block = processor_text().partition("\n\n")[0]
    constant = [line for line in block.splitlines() if line.startswith(PROCESSOR_FIELDS)]
    variables = sorted(item for item in os.environ.items() if item[0].startswith(VARIABLES))
    parts = (version("torch"), file and (file.st_size, file.st_mtime_ns), constant, variables)
    return sha256(repr((parts, platform.uname().machine)).encode()).hexdigest()


def read_kernels(path: Path) -> dict[str, str] | None:
    """Return the kernels of a cache file; None if it is missing or damaged."""
    try:
        kernels: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(kernels, dict):
        return None
    values = {str(name): str(value) for name, value in cast(dict[str, str], kernels).items()}
    return values if values.keys() == {"torch", "mkl", "rounding"} else None


def measured_kernels() -> dict[str, str]:
    """Load torch, and return the kernels that act; see `acting_kernels`.

    The digest is of the results of a few fixed operations in one thread: two processors with the
    same digest took every sum of them in the same order.
    """
    import torch

    return {
        "torch": torch_path(),
        "mkl": mkl_branch(Path(torch.__file__).parent / LIBRARY),
        "rounding": rounding_digest(),
    }


def torch_path() -> str:
    """Return the instruction set of torch's kernels, e.g. "AVX2"."""
    import torch

    return torch.backends.cpu.get_cpu_capability()


def mkl_branch(library: Path) -> str:
    """Return the branch of MKL's code that acts, "unknown" without MKL in the library of torch."""
    try:
        branch = CDLL(str(library)).mkl_serv_cbwr_get(1)
    except (OSError, AttributeError):
        return "unknown"
    return BRANCHES.get(branch, str(branch))


def rounding_digest() -> str:
    """Return a digest of the bits of products, sums and functions of fixed numbers."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            x = (torch.arange(96 * 160) * 37 % 101 + 1).float().reshape(96, 160) / 101
            narrow, heads = x.bfloat16(), x.reshape(1, 4, 24, 160)
            results = [
                *(x @ x.T, x[:7] @ x.T, (narrow @ narrow.T).float(), x.sum(0), x.mean(1)),
                *(x.sqrt(), x.rsqrt(), x.exp(), x.log(), x.tanh(), x.softmax(-1), x.cumsum(-1)),
                attention(heads, heads, heads),
            ]
    finally:
        torch.set_num_threads(threads)
    bits = b"".join(result.contiguous().numpy().tobytes() for result in results)
    return sha256(bits).hexdigest()[:ROUNDING]


def processor() -> str:
    """Return the maker and model of this processor, e.g. "AuthenticAMD, AMD EPYC 7763"."""
    lines = [line.partition(":") for line in processor_text().splitlines()]
    fields = {name.strip(): value.strip() for name, _, value in lines}
    names = [fields[name] for name in ("vendor_id", "model name") if name in fields]
    return ", ".join(names) or platform.processor() or platform.machine()


def processor_text() -> str:
    """Return the content of Linux's /proc/cpuinfo; empty on other systems."""
    if not CPU_INFO.is_file():
        return ""
    return CPU_INFO.read_text(encoding="utf-8", errors="replace")
