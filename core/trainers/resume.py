"""What a checkpoint needs beyond the weights so that a resumed run is the same run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import nn

from core.trainers.reference import mix_into
from core.trainers.sharding import whole
from eval.errors import DamagedFile

STATE = "rollout_state.pt"
REFERENCE = "reference.safetensors"


def save_state(folder: Path, state: Mapping[str, Any], rank: int) -> None:
    """Write micro-batches not yet used, counters and pending metrics of one process."""
    folder.mkdir(parents=True, exist_ok=True)  # a process may come before the one that makes it
    torch.save(dict(state), state_file(folder, rank))


def load_state(folder: Path, rank: int) -> dict[str, Any] | None:
    """Read them back; None for a checkpoint that has none.

    Raises:
        DamagedFile: the file is cut off or altered.
    """
    path = state_file(folder, rank)
    if not path.exists():
        return None
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:  # torch raises many kinds on a damaged file
        raise DamagedFile(
            f"{path}: not the state of a rollout ({error}); continue from an earlier checkpoint"
        ) from error


def state_file(folder: Path, rank: int) -> Path:
    """Name one file per process."""
    return folder / (STATE if rank == 0 else f"{rank}_{STATE}")


def save_reference(folder: Path, reference: nn.Module) -> None:
    """Write a reference that has moved since the start."""
    save_model(reference, str(folder / REFERENCE))


def load_reference(folder: Path, reference: nn.Module, room: nn.Module | None) -> None:
    """Put a moved reference back, if the checkpoint has one; see `whole` for `room`."""
    path = folder / REFERENCE
    if not path.exists():
        return
    with whole(reference, room) as loaded:
        load_model(loaded, str(path))
        if loaded is not reference:
            mix_into(reference, loaded, alpha=1.0)
