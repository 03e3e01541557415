"""Settings that trainers of labelled answers share."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from core.configs.reference_config import ReferenceConfig
from core.losses.unpaired import UNPAIRED
from core.option import choice
from eval.errors import BadValue

STEP = "step"


class Described(NamedTuple):
    """A row of a table of choices that consists of its description."""

    doc: str


ORDERS = {
    "sequential": Described("as the data set has them"),
    "random": Described("shuffled in every epoch"),
}
SCOPES = {
    "micro_batch": Described("those of a micro-batch on all processes, as in TRL"),
    STEP: Described("those of an optimizer step on all processes"),
}


@dataclass
class UnpairedConfig(ReferenceConfig):
    """Settings of labelled answers: their order, and the answers that make the shift of rewards.

    Raises:
        BadValue: see `ReferenceConfig`, or `batch_scope` is set and the loss has no shift.
    """

    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "train_sampling_strategy": tuple(ORDERS),
        "batch_scope": tuple(SCOPES),
    }

    train_sampling_strategy: str = choice("sequential", ORDERS, "Order of the training rows")
    batch_scope: str = choice(
        "micro_batch", SCOPES, "Answers whose mean is the shift of rewards, z0 or delta"
    )

    @property
    @abstractmethod
    def loss_name(self) -> str:
        """The name of the loss, a row of `UNPAIRED`."""

    @property
    def reads_steps(self) -> bool:
        """True if the shift of rewards is the same in all micro-batches of an optimizer step."""
        return self.batch_scope == STEP

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

    def check_scope(self) -> None:
        """Refuse `batch_scope` for a loss whose shift is 0.

        Raises:
            BadValue: it is set.
        """
        if self.is_set("batch_scope") and not UNPAIRED[self.loss_name].has_shift:
            raise BadValue(
                f"batch_scope={self.batch_scope!r}: loss_type={self.loss_name!r} has no shift of "
                "rewards; leave it out"
            )
