"""Settings of Kahneman-Tversky optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from core.configs.unpaired_config import UnpairedConfig
from core.losses.unpaired import UNPAIRED
from core.option import choice, option
from eval.errors import BadValue

LOSSES = {name: UNPAIRED[name] for name in ("kto", "apo_zero_unpaired")}
WEIGHTS = ("desirable_weight", "undesirable_weight")


@dataclass
class KTOConfig(UnpairedConfig):
    """Settings of `KTOTrainer`: the loss of labelled answers, with those of a reference.

    Raises:
        BadValue: see `UnpairedConfig`, a weight is not finite, or a batch has one row, which has no
            answer to another prompt.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {**UnpairedConfig.UNSUPPORTED}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **UnpairedConfig.CHOICES,
        "loss_type": tuple(LOSSES),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **UnpairedConfig.AT_LEAST,
        **dict.fromkeys(WEIGHTS, 0.0),
    }

    loss_type: str = choice("kto", LOSSES, "Loss of an answer")
    desirable_weight: float = option(1.0, "Factor of the losses of desirable answers.")
    undesirable_weight: float = option(1.0, "Factor of the losses of undesirable answers.")

    @property
    def loss_name(self) -> str:
        """The name of the loss, a row of `UNPAIRED`."""
        return self.loss_type

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and check those of the loss together."""
        super().resolve()
        for name in WEIGHTS:
            if not isfinite(getattr(self, name)):
                raise BadValue(f"KTOConfig.{name}={getattr(self, name)!r}: expected a number")
        if self.needs_mismatches and self.per_device_train_batch_size < 2:
            raise BadValue(
                "per_device_train_batch_size=1: Actual (not effective) batch size must be > 1, as "
                f"loss_type={self.loss_type!r} compares with answers to other prompts of the batch"
            )
