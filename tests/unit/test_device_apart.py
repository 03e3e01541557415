"""What trains and samples on a device leaves no tensor on the CPU, and computes the same there.

The device is a stand-in for a GPU: its tensors are computed by the CPU's own kernels, and it
refuses those of the CPU as a GPU does. It says nothing of a GPU's kernels, memory or speed.
"""

import subprocess
import sys
from pathlib import Path

import device_apart
import pytest
import torch
from two_processes import save_models

BOUND = 1e-4
SCRIPT = Path(device_apart.__file__)


@pytest.fixture(scope="module")
def both(build_llama, tiny_tokenizer, tmp_path_factory):
    """The numbers of the CPU and those of the device, and what the device refused."""
    place = tmp_path_factory.mktemp("apart")
    folder = save_models(place, build_llama, tiny_tokenizer, tie_word_embeddings=False)
    done = subprocess.run(
        [sys.executable, SCRIPT, folder, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = torch.load(folder / "apart.pt")
    return device_apart.everything(folder, folder, "cpu"), found["numbers"], found["misplaced"]


@pytest.mark.long
def test_a_device_computes_what_the_cpu_does(both):
    """Up to rounding: its sums are those of other layouts, and AdamW is the one for devices."""
    here, there, _ = both
    assert list(here) == list(there)
    for name, numbers in here.items():
        difference = (there[name] - numbers).abs().max().item()
        assert difference < BOUND * max(1.0, numbers.abs().max().item()), name


@pytest.mark.long
def test_a_tensor_that_stays_on_the_cpu_is_refused(both):
    assert both[2] == "aten.mul.Tensor: a tensor of the CPU among those of apart"
