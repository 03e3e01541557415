"""Which kernels torch computes with after a command has started, and what a training's key says."""

import os
import subprocess
import sys

import pytest

from core.run.kernels import PINNED, PINS, processor_flags

AVX2 = pytest.mark.skipif("avx2" not in processor_flags(), reason="a processor without AVX2")
SHOW = """
import sys
{first}
from core.run.kernels import kernel_key, kernel_path
before = kernel_path()
import torch
print(before, kernel_path(), torch.backends.cpu.get_cpu_capability(), kernel_key())
"""


def shown(first, **environment):
    """Return what a fresh process says of its kernels."""
    clean = {name: value for name, value in os.environ.items() if name not in PINS}
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(first=first)],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@AVX2
def test_a_command_computes_with_the_pinned_kernels_whatever_it_imports():
    assert shown("import core.cli.main") == f"{PINNED} {PINNED} {PINNED} {{}}"
    assert shown("import core.cli.running") == f"{PINNED} {PINNED} {PINNED} {{}}"


@AVX2
def test_kernels_that_a_user_set_stay_and_are_in_the_key():
    said = shown("import core.cli.main", ATEN_CPU_CAPABILITY="default")
    assert said == "DEFAULT DEFAULT DEFAULT {'kernels': 'DEFAULT'}"


@AVX2
def test_the_kernels_that_torch_will_choose_are_known_before_it_is_loaded():
    before, after, acted, _ = shown("").split(maxsplit=3)
    assert before == after == acted


@AVX2
def test_children_of_a_process_that_loaded_torch_first_compute_as_it_does():
    said = shown("import torch; import core.cli.main", ATEN_CPU_CAPABILITY="default")
    assert said.startswith("DEFAULT DEFAULT DEFAULT")
    first = (
        "import torch; import core.cli.main; import os; print(os.environ['ATEN_CPU_CAPABILITY'])"
    )
    child, acted = shown(first).split()[:2]
    assert child.upper() == acted
