"""Settings of distillation across tokenizers, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.distillation.distilling_config import DistillingConfig
from core.distillation.divergence_config import MEANS
from core.distillation.gkd_config import GKDConfig
from core.losses.transport import BAYESIAN, OBSERVED
from core.option import choice, option
from eval.errors import BadValue

WEIGHTS = ("uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight")
OF_ULD = (
    *("teacher_tokenizer_name_or_path", "use_extended_uld", "uld_token_merge_strategy"),
    *("uld_use_hybrid_loss", *WEIGHTS, "uld_crossentropy_weight", "uld_distillation_weight"),
    *("uld_student_temperature", "uld_teacher_temperature"),
    *("uld_skip_student_eos", "uld_skip_teacher_eos"),
)


@dataclass
class GOLDConfig(GKDConfig):
    """Settings of `GOLDTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    Without `use_uld_loss` it is GKD with `temperature` in the loss. With it the teacher may have
    another tokenizer. `normalize` is no setting of TRL; `generation_batch_size` counts completions,
    as in every trainer here.

    Raises:
        BadValue: see `DistillingConfig`, a value is out of range, or a setting has no effect beside
            the others.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GKDConfig.UNSUPPORTED,
        "seq_kd": "in TRL's GOLD it has no effect; GKDConfig has it, for teachers of one tokenizer",
        "vllm_sync_frequency": "vLLM samples from the latest weights",
        "wandb_log_unique_prompts": "set log_unique_prompts",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **DistillingConfig.CHOICES,
        "normalize": (None, *MEANS),
        "uld_token_merge_strategy": (OBSERVED, BAYESIAN),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **GKDConfig.AT_LEAST,
        "log_completions_steps": 1,
        **dict.fromkeys(("uld_crossentropy_weight", "uld_distillation_weight", *WEIGHTS), 0.0),
        **dict.fromkeys(("uld_student_temperature", "uld_teacher_temperature"), 1e-6),
    }

    learning_rate: float = option(1e-7, "Initial learning rate of AdamW.")
    temperature: float = option(
        0.9, "Sampling temperature, and that of the loss without use_uld_loss."
    )
    top_p: float = option(0.95, "Sample within this probability mass.")
    vllm_server_port: int = option(8001, "Port of the vLLM server.")
    vllm_gpu_memory_utilization: float = option(0.9, "Share of a GPU's memory for vLLM.")
    vllm_sync_frequency: int = option(1, "Optimizer steps between two updates of vLLM's weights.")
    log_completions_steps: int = option(100, "Optimizer steps between two logs of completions.")
    wandb_log_unique_prompts: bool = option(True, "Log one completion of each prompt to W&B.")
    callbacks: list[str] | None = option(None, "Names of callbacks, which the trainer takes.")
    normalize: str = choice(
        None, MEANS, "Unset, 'sequence' with use_uld_loss and else 'token', as in TRL. What it is"
    )

    teacher_tokenizer_name_or_path: str | None = option(
        None, "Tokenizer of the teacher with use_uld_loss; unset, that of its name."
    )
    use_uld_loss: bool = option(
        False, "Compare sorted probabilities, which needs no common tokenizer."
    )
    use_extended_uld: bool = option(
        True, "Compare groups of tokens that end at one byte of the text; else tokens by places."
    )
    uld_token_merge_strategy: str = option(
        OBSERVED,
        f"Probabilities of a group: '{OBSERVED}', those of its first token times the probabilities "
        f"of the later ones; '{BAYESIAN}', those of its last one times those of the earlier ones.",
    )
    uld_use_hybrid_loss: bool = option(
        False, "Compare entries of both vocabularies directly, and sort the others alone."
    )
    uld_hybrid_matched_weight: float | None = option(
        None, "Weight of the direct part; unset, its share of the teacher's vocabulary."
    )
    uld_hybrid_unmatched_weight: float | None = option(
        None, "Weight of the sorted part; unset, 1 less the other weight."
    )
    uld_crossentropy_weight: float = option(
        0.0, "Weight of the negative log-likelihood of completions of the data."
    )
    uld_distillation_weight: float = option(1.0, "Weight of the distance to the teacher.")
    uld_student_temperature: float = option(1.0, "Temperature of the student in the distance.")
    uld_teacher_temperature: float = option(1.0, "Temperature of the teacher in the distance.")
    uld_skip_student_eos: bool = option(True, "Leave the student's end token out of the distance.")
    uld_skip_teacher_eos: bool = option(True, "Leave the teacher's end token out of the distance.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those that have no effect beside the others."""
        super().resolve()
        self.normalize = self.normalize or ("sequence" if self.use_uld_loss else "token")
        if self.callbacks:
            raise BadValue(f"GOLDConfig.callbacks={self.callbacks!r}: give the trainer callbacks")
        idle = [name for name in OF_ULD if self.is_set(name)]
        if idle and not self.use_uld_loss:
            raise BadValue(
                f"GOLDConfig.{idle[0]}={getattr(self, idle[0])!r} is no setting of "
                "use_uld_loss=False: leave it out, or set use_uld_loss=True"
            )
        if self.max_length is not None and self.max_completion_length >= self.max_length:
            raise BadValue(
                f"GOLDConfig.max_length={self.max_length}: expected more than "
                f"max_completion_length={self.max_completion_length}, for tokens of the prompt"
            )
        if self.use_uld_loss:
            self.check_uld()

    def check_uld(self) -> None:
        """Refuse settings that have no effect beside others of the loss across tokenizers."""
        weights = [name for name in WEIGHTS if self.is_set(name)]
        if not self.uld_use_hybrid_loss:
            for name in [*weights, *(["beta"] if self.is_set("beta") else [])]:
                raise BadValue(
                    f"GOLDConfig.{name}={getattr(self, name)!r} is of entries of both "
                    "vocabularies: set uld_use_hybrid_loss=True, or leave it out"
                )
        if len(weights) == 1:
            raise BadValue(f"GOLDConfig.{weights[0]} without the other weight: set both, or none")
        if self.use_extended_uld and self.uld_skip_student_eos != self.uld_skip_teacher_eos:
            raise BadValue(
                "uld_skip_student_eos and uld_skip_teacher_eos differ: an end token is compared "
                "with that of the other side; set both alike"
            )
        if self.uld_crossentropy_weight and self.lmbda == 1:
            raise BadValue(
                f"uld_crossentropy_weight={self.uld_crossentropy_weight!r} with lmbda=1: it is of "
                "completions of the data, never of the student's own; leave it out, or lower lmbda"
            )

    @property
    def loss_temperature(self) -> float:
        """Temperature of both models in the loss; with `use_uld_loss` each has its own."""
        return self.temperature

    @property
    def heats_loss(self) -> bool:
        """True if the loss has the temperature of sampling."""
        return not self.use_uld_loss

    @property
    def longest_prompt(self) -> int | None:
        """Number of tokens to which prompts are cut, from the left."""
        return None if self.max_length is None else self.max_length - self.max_completion_length

    @property
    def completion_log_steps(self) -> int:
        """Optimizer steps between two logs of completions."""
        return self.log_completions_steps
