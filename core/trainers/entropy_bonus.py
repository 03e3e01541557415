"""The weight of an entropy bonus, which may depend on the entropy of the last optimizer step."""

import json
from math import inf
from pathlib import Path
from typing import cast

import torch
from accelerate import Accelerator
from torch import Tensor

from core.collect.metrics import sum_and_count
from core.losses.aggregate import Scale, token_mean
from core.losses.entropy import EntropyConfig, acting_coefficient, next_coefficient
from eval.errors import DamagedFile

STATE = "entropy_ctrl_state.json"  # TRL's name and words


class EntropyBonus:
    """The weight of the bonus in this optimizer step, and the entropies that determine the next."""

    def __init__(self, args: EntropyConfig):
        self.args = args
        self.begin()

    def begin(self) -> None:
        """Reset to the settings; the unknown entropy keeps an adaptive weight at 0."""
        self.coefficient, self.last = self.args.entropy_coef, inf
        self.seen: list[Tensor] = []  # sums and counts (2,) of the pieces of this step

    @property
    def acting(self) -> float:
        """The weight in this step."""
        return acting_coefficient(self.coefficient, self.last, self.args)

    def weigh(self, entropy: Tensor, mask: Tensor, scale: Scale, *, training: bool) -> Tensor:
        """Return the weighted mean entropy of a micro-batch, from entropies of tokens (B, T).

        In training the entropies also count for the next weight.
        """
        if training:
            self.seen.append(sum_and_count(entropy.detach(), mask))
        return self.acting * token_mean(entropy, mask, scale)

    def step(self, accelerator: Accelerator) -> float:
        """Finish an optimizer step and return the coefficient of the next one."""
        total = torch.stack(self.seen).sum(0)
        sums = cast(Tensor, accelerator.reduce(total, reduction="sum"))
        self.seen.clear()
        self.last = (sums[0] / sums[1].clamp(min=1.0)).item()
        self.coefficient = next_coefficient(self.coefficient, self.last, self.args)
        return self.coefficient

    def save(self, folder: Path) -> None:
        """Write the state into a checkpoint."""
        state = {"entropy_coef": self.coefficient, "last_world_entropy": self.last}
        (folder / STATE).write_text(json.dumps(state), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Restore the state from a checkpoint of ours or TRL's; without one, reset to the settings.

        Raises:
            DamagedFile: the file is truncated or altered.
        """
        self.begin()
        path = folder / STATE
        if not path.exists():
            return
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            self.coefficient = float(state["entropy_coef"])
            self.last = float(state["last_world_entropy"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFile(
                f"{path}: not the state of an entropy bonus ({error}); continue from an earlier "
                "checkpoint"
            ) from error
