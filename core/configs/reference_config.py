"""Settings that trainers share whose losses compare a policy with a frozen reference."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

from core.configs.answer_config import AnswerConfig
from core.configs.base import padding_multiple
from core.option import choice, option
from eval.errors import BadValue

STEP = "step"


class Described(NamedTuple):
    """A row of a table of choices that consists of its description."""

    doc: str


SCOPES = {
    "micro_batch": Described("those of a micro-batch, as in TRL"),
    STEP: Described("those of an optimizer step on all processes"),
}


@dataclass
class ReferenceConfig(AnswerConfig):
    """Settings of given answers and of the reference, on top of `TrainingArguments`.

    Raises:
        BadValue: see `BaseConfig`, `beta` is not above 0, settings of the reference do not go
            together, or `batch_scope` is set and no loss reads other rows.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        "activation_offloading": "activation checkpoints stay where the model is",
        "label_smoothing_factor": "it is of the labels of tokens",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {"batch_scope": tuple(SCOPES)}
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "max_length": 2,
        "precompute_ref_batch_size": 1,
        "ref_model_sync_steps": 1,
        "router_aux_loss_coef": 0.0,
    }

    learning_rate: float = option(1e-6, "Initial learning rate of AdamW.")
    router_aux_loss_coef: float | None = option(
        None, "Weight of the load-balancing loss of experts; unset, the model's own."
    )
    disable_dropout: bool = option(True, "Train without dropout.")

    dataset_num_proc: int | None = option(None, "Processes that prepare the dataset.")
    max_length: int | None = option(
        1024, "Longest prompt with an answer in tokens; longer ones are cut."
    )
    pad_to_multiple_of: int | str | None = option("auto", "Pad lengths to a multiple of this.")

    precompute_ref_log_probs: bool = option(
        False, "Compute the reference's log-probabilities once, before training."
    )
    precompute_ref_batch_size: int | None = option(
        None, "Rows of a batch when they are computed; unset, those of a training batch."
    )
    beta: float = option(
        0.1, "Weight of log-ratios in the loss: rewards are beta log(pi / pi_ref)."
    )
    batch_scope: str = choice("micro_batch", SCOPES, "Rows that a loss of several rows reads")
    activation_offloading: bool = option(False, "Not supported.")
    sync_ref_model: bool = option(False, "Move the reference towards the policy.")
    ref_model_mixup_alpha: float = option(0.6, "Share of the policy in the moved reference.")
    ref_model_sync_steps: int = option(512, "Optimizer steps between two moves.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and check those of the reference together."""
        super().resolve()
        if not 0 < self.beta < inf:
            raise BadValue(f"{type(self).__name__}.beta={self.beta!r}: expected a number above 0")
        self.check_reference()
        self.check_scope()
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)

    @property
    @abstractmethod
    def reads_others(self) -> bool:
        """True if the loss of a row depends on other rows."""

    @property
    def reads_steps(self) -> bool:
        """True if these are all rows of an optimizer step."""
        return self.batch_scope == STEP

    def check_scope(self) -> None:
        """Refuse `batch_scope` for losses of single rows.

        Raises:
            BadValue: it is set.
        """
        if self.is_set("batch_scope") and not self.reads_others:
            losses = getattr(self, "loss_type", None)
            raise BadValue(
                f"batch_scope={self.batch_scope!r}: no row of loss_type={losses!r} reads others; "
                "leave it out"
            )

    def check_reference(self) -> None:
        """Refuse to move a reference whose log-probabilities are computed beforehand.

        Raises:
            BadValue: both are set, or moves are set of a reference that stays.
        """
        if self.sync_ref_model and self.precompute_ref_log_probs:
            raise BadValue(
                "You cannot use `sync_ref_model=True` together with "
                "`precompute_ref_log_probs=True`: the reference moves; leave one of them out"
            )
        for name in ("ref_model_mixup_alpha", "ref_model_sync_steps"):
            if self.is_set(name) and not self.sync_ref_model:
                raise BadValue(
                    f"{name}={getattr(self, name)!r}: the reference does not move; set "
                    "sync_ref_model=True, or leave it out"
                )
        if self.is_set("precompute_ref_batch_size") and not self.precompute_ref_log_probs:
            raise BadValue(
                f"precompute_ref_batch_size={self.precompute_ref_batch_size}: nothing is computed "
                "beforehand; set precompute_ref_log_probs=True, or leave it out"
            )
