"""Settings that trainers of labelled answers share."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_config import Described, ReferenceConfig
from core.losses.unpaired import UNPAIRED
from core.option import choice

ORDERS = {
    "sequential": Described("as the data set has them"),
    "random": Described("shuffled in every epoch"),
}


@dataclass
class UnpairedConfig(ReferenceConfig):
    """Settings of labelled answers: their order, with those of a reference.

    Raises:
        BadValue: see `ReferenceConfig`.
    """

    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **ReferenceConfig.CHOICES,
        "train_sampling_strategy": tuple(ORDERS),
    }

    train_sampling_strategy: str = choice("sequential", ORDERS, "Order of the training rows")

    @property
    @abstractmethod
    def loss_name(self) -> str:
        """The name of the loss, a row of `UNPAIRED`."""

    @property
    def reads_others(self) -> bool:
        """True if other answers make a shift of rewards."""
        return UNPAIRED[self.loss_name].has_shift

    @property
    def needs_mismatches(self) -> bool:
        """True if the loss reads answers to other prompts."""
        return UNPAIRED[self.loss_name].needs_mismatches

    @property
    def block(self) -> int | None:
        """Number of rows among which answers change their prompts; None if they do not."""
        if not self.needs_mismatches:
            return None
        parts = self.gradient_accumulation_steps * self.world_size if self.reads_steps else 1
        return self.per_device_train_batch_size * parts
