"""Settings of generalised knowledge distillation, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.new_tokens import take_new_tokens
from core.distillation.distilling_config import DistillingConfig, SharedSourceConfig
from core.option import option
from eval.errors import BadValue

TOKENIZER = "set it on the tokenizer"
ROWS = "a row is a prompt with its completion, or a conversation"
ANSWERS = "completions are trained on"
UNPACKED = "rows are packed as the attention of both models allows"
FINE_TUNING: Mapping[str, str] = {  # settings of TRL's class, which extends that of fine-tuning
    **dict.fromkeys(("chat_template_path", "eos_token", "pad_token"), TOKENIZER),
    **dict.fromkeys(("dataset_text_field", "dataset_kwargs", "dataset_num_proc"), ROWS),
    **dict.fromkeys(("completion_only_loss", "assistant_only_loss"), ANSWERS),
    **dict.fromkeys(("packing", "packing_strategy", "padding_free", "eval_packing"), UNPACKED),
    "truncation_mode": "a row that is too long loses its end",
    "loss_type": "the loss is a divergence; set beta",
    "activation_offloading": "activations stay where they are",
}


@dataclass
class GKDConfig(SharedSourceConfig):
    """Settings of `GKDTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    `max_new_tokens` is another name of `max_completion_length`. The loss has temperature 1. With
    probability `lmbda` the student samples a rollout; TRL draws for each micro-batch of each
    process. Rows are visited in random order, as in TRL, whose `shuffle_dataset` is False.
    `normalize` is no setting of TRL.

    Raises:
        BadValue: see `DistillingConfig`, or `lmbda` is outside [0, 1].
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {**DistillingConfig.UNSUPPORTED, **FINE_TUNING}
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **DistillingConfig.AT_LEAST,
        "max_new_tokens": 1,
        "max_length": 2,
    }

    learning_rate: float = option(2e-5, "Initial learning rate of AdamW.")
    disable_dropout: bool = option(True, "Train without dropout.")
    temperature: float = option(0.9, "Sampling temperature; the loss has temperature 1.")
    max_completion_length: int = option(128, "Longest sampled completion in tokens.")
    max_new_tokens: int = option(128, "Longest sampled completion: max_completion_length.")
    max_length: int | None = option(1024, "Longest prompt with its completion in the data.")
    beta: float = option(0.5, "Divergence: 0 is the forward KL, 1 the reverse KL.")
    lmbda: float = option(0.5, "Probability that the student samples a rollout.")
    seq_kd: bool = option(False, "Let the teacher sample the other rollouts.")

    chat_template_path: str | None = option(None, "Chat template.")
    dataset_text_field: str = option("text", "Column of texts.")
    dataset_kwargs: dict[str, Any] | str | None = option(None, "Keywords of preparing rows.")
    dataset_num_proc: int | None = option(None, "Processes that prepare rows.")
    eos_token: str | None = option(None, "End token.")
    pad_token: str | None = option(None, "Padding token.")
    truncation_mode: str = option("keep_start", "Which end of a long row is kept.")
    packing: bool = option(False, "Put several rows into one.")
    packing_strategy: str = option("bfd", "How rows are put together.")
    padding_free: bool = option(False, "Put the rows of a batch into one.")
    eval_packing: bool | None = option(None, "The same in evaluation.")
    completion_only_loss: bool | None = option(None, "Train on completions alone.")
    assistant_only_loss: bool = option(False, "Train on assistant messages alone.")
    loss_type: str = option("nll", "Loss of fine-tuning.")
    activation_offloading: bool = option(False, "Move activations to the CPU.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer with a teacher."""
        take_new_tokens(self)
        super().resolve()
        if self.seq_kd and self.lmbda == 1:
            raise BadValue(
                "seq_kd=True with lmbda=1: the student samples every rollout; leave seq_kd out, or "
                "lower lmbda"
            )

    @property
    def loss_temperature(self) -> float:
        """Temperature of both models in the loss."""
        return 1.0

    @property
    def samples_teacher(self) -> bool:
        """True if the teacher samples the other rollouts; otherwise they are those of the data."""
        return self.seq_kd

    @property
    def heats_loss(self) -> bool:
        """False: log-probabilities have temperature 1."""
        return False
