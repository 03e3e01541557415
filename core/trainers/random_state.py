"""Preservation of the random number generators that training draws from."""

import random
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def unchanged_random_state(device: torch.device) -> Generator[None]:
    """Restore the generators of Python, NumPy and torch at the end of the block.

    Args:
        device: Device whose generator is restored beside the CPU's.
    """
    of_python, of_numpy = random.getstate(), np.random.get_state()
    devices = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
