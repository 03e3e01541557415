"""Settings of supervised fine-tuning, with TRL 1.16's names and defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.base import BaseConfig, padding_multiple
from core.losses.supervised import SUPERVISED
from core.option import choice, option
from eval.errors import BadValue


@dataclass(frozen=True)
class Packing:
    """A row of `PACKINGS`.

    Attributes:
        doc: its help.
        keeps_apart: whether the documents of a row must not attend to each other.
        splits: whether a document longer than a row becomes several documents.
    """

    doc: str
    keeps_apart: bool = True
    splits: bool = False


PACKINGS = {
    "bfd": Packing("they are cut"),
    "bfd_split": Packing("they are split", splits=True),
    "wrapped": Packing("all are cut where a row is full", keeps_apart=False),
    "next_fit": Packing("they are cut, and packed in their order, arXiv 1910.10683"),
}


@dataclass(frozen=True)
class Truncation:
    """A row of `TRUNCATIONS`: the slice of a long sequence that keeps a number of tokens."""

    doc: str
    kept: Callable[[int], slice]


TRUNCATIONS = {
    "keep_start": Truncation("the start", lambda length: slice(length)),
    "keep_end": Truncation("the end", lambda length: slice(-length, None)),
}


@dataclass
class SFTConfig(BaseConfig):
    """Settings of `SFTTrainer`: data preparation and the loss on top of `TrainingArguments`."""

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [
        *BaseConfig._VALID_DICT_FIELDS,
        "model_init_kwargs",
        "dataset_kwargs",
    ]

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "loss_type": tuple(SUPERVISED),
        "packing_strategy": tuple(PACKINGS),
        "truncation_mode": tuple(TRUNCATIONS),
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
    truncation_mode: str = choice("keep_start", TRUNCATIONS, "What is kept of a long sequence")
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
    mask_tool_outputs: bool = option(
        False, "Do not train on what programs print: the text of ```output blocks."
    )
    loss_type: str = choice("nll", SUPERVISED, "Loss of a token")
    activation_offloading: bool = option(
        False, "Keep in host memory what activation checkpointing keeps."
    )
    pad_token: str | None = option(None, "Token that pads; unset, the tokenizer's.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and the multiple of padding.

        Raises:
            BadValue: see `check_lengths` and `offload_activations`, or the loss has no smoothed
                labels.
        """
        super().resolve()
        self.check_lengths()
        if self.label_smoothing_factor and not SUPERVISED[self.loss_type].smooths:
            raise BadValue(
                f"label_smoothing_factor={self.label_smoothing_factor} with "
                f"loss_type={self.loss_type!r}, which smooths no labels: leave one of them out"
            )
        if self.activation_offloading:
            self.offload_activations()
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)

    def check_lengths(self) -> None:
        """Refuse settings of long sequences that no sequence would be cut by.

        Raises:
            BadValue: `padding_free` has a `max_length` but no packing, or packing a
                `truncation_mode`.
        """
        if self.padding_free and not self.packing and self.max_length and self.is_set("max_length"):
            raise BadValue(
                f"padding_free=True with max_length={self.max_length} and without packing: "
                "`max_length` is not enforced; set max_length=None and give rows that are cut, or "
                "packing=True"
            )
        if self.packing and self.eval_packing is not False and self.is_set("truncation_mode"):
            raise BadValue(
                f"truncation_mode={self.truncation_mode!r} with packing=True: packing_strategy "
                "decides what happens to long sequences, leave one of them out"
            )

    def offload_activations(self) -> None:
        """Let checkpoints keep activations in host memory, where those of a CPU are anyway.

        Raises:
            BadValue: there are no checkpoints, or transformers cannot offload them.
        """
        newer = "activation_checkpointing_kwargs"
        if not (self.gradient_checkpointing and hasattr(self, newer)):
            raise BadValue(
                "activation_offloading=True moves what activation checkpointing keeps: set "
                "gradient_checkpointing=True, with transformers 5.23 or later"
            )
        for name in (newer, "gradient_checkpointing_kwargs") if self.device.type != "cpu" else ():
            setattr(self, name, {**self.checkpoint_keywords, "offload": True})

    @property
    def padding(self) -> int | None:
        """Multiple to which token widths are padded, or None."""
        return self.pad_to_multiple_of if isinstance(self.pad_to_multiple_of, int) else None

    @property
    def joins_rows(self) -> bool:
        """True if the rows of a batch become one, whose documents must not attend to each other."""
        return self.padding_free or (self.packing and PACKINGS[self.packing_strategy].keeps_apart)
