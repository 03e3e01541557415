"""Settings of supervised fine-tuning, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.base import BaseConfig, padding_multiple
from core.losses.supervised import SUPERVISED
from core.option import choice, option
from eval.errors import BadValue


@dataclass(frozen=True)
class Packing:
    """A row of `PACKINGS`: whether the documents of a row must not attend to each other."""

    doc: str
    keeps_apart: bool = True


PACKINGS = {
    "bfd": Packing("they are cut"),
    "bfd_split": Packing("they are split"),
    "wrapped": Packing("all are cut where a row is full", keeps_apart=False),
}


@dataclass
class SFTConfig(BaseConfig):
    """Settings of `SFTTrainer`: data preparation and the loss on top of `TrainingArguments`."""

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [
        *BaseConfig._VALID_DICT_FIELDS,
        "model_init_kwargs",
        "dataset_kwargs",
    ]

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        "activation_offloading": "activations stay on the device",
        "label_smoothing_factor": "every label is the token that comes next",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "loss_type": tuple(SUPERVISED),
        "packing_strategy": tuple(PACKINGS),
        "truncation_mode": ("keep_start",),
    }
    ALIASES: ClassVar[Mapping[str, Mapping[object, object]]] = {  # names that TRL has given up
        "loss_type": {"chunked_nll": "nll"},
        "packing_strategy": {"bfd-requeue": "bfd_split"},
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 1, "router_aux_loss_coef": 0.0}

    learning_rate: float = option(2e-5, "Initial learning rate of AdamW.")
    router_aux_loss_coef: float | None = option(
        None, "Weight of the load-balancing loss of experts; unset, the model's own."
    )
    chat_template_path: str | None = option(None, "Tokenizer or Jinja file with a chat template.")

    dataset_text_field: str = option("text", "Column that holds the text.")
    dataset_kwargs: dict[str, Any] | str | None = option(
        None, "`{'skip_prepare_dataset': True}`: the rows are token ids already, leave them so."
    )
    dataset_num_proc: int | None = option(None, "Processes that prepare the dataset.")
    eos_token: str | None = option(None, "Token that ends a sequence; unset, the tokenizer's.")
    max_length: int | None = option(1024, "Longest sequence in tokens; longer ones are cut.")
    truncation_mode: str = option("keep_start", "Which end of a long sequence is kept.")
    shuffle_dataset: bool = option(False, "Shuffle the dataset once before training.")
    packing: bool = option(False, "Put several sequences into one row of `max_length` tokens.")
    packing_strategy: str = choice("bfd", PACKINGS, "What packing does with long sequences")
    padding_free: bool = option(False, "Join the rows of a batch into one without padding.")
    pad_to_multiple_of: int | str | None = option("auto", "Pad lengths to a multiple of this.")
    eval_packing: bool | None = option(None, "Pack the evaluation set; unset, as `packing`.")

    completion_only_loss: bool | None = option(
        None, "Train on the completion only; unset, exactly when the data has one."
    )
    assistant_only_loss: bool = option(False, "Train on the assistant's turns only.")
    loss_type: str = choice("nll", SUPERVISED, "Loss of a token")
    activation_offloading: bool = option(False, "Move activations to host memory.")
    pad_token: str | None = option(None, "Token that pads; unset, the tokenizer's.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and the multiple of padding.

        Raises:
            BadValue: `padding_free` has a `max_length` but no packing.
        """
        super().resolve()
        if self.padding_free and not self.packing and self.max_length and self.is_set("max_length"):
            raise BadValue(
                f"padding_free=True with max_length={self.max_length} and without packing: "
                "`max_length` is not enforced; set max_length=None and give rows that are cut, or "
                "packing=True"
            )
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)

    @property
    def padding(self) -> int | None:
        """Multiple to which token widths are padded, or None."""
        return self.pad_to_multiple_of if isinstance(self.pad_to_multiple_of, int) else None

    @property
    def joins_rows(self) -> bool:
        """True if the rows of a batch become one, whose documents must not attend to each other."""
        return self.padding_free or (self.packing and PACKINGS[self.packing_strategy].keeps_apart)
