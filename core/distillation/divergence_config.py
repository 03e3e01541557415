"""Settings of the trainers whose loss is a divergence of a student from a teacher."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.rollout import RolloutConfig
from core.distillation.unrewarded import UNREWARDED
from core.losses.aggregate import AGGREGATES
from core.option import choice, option
from eval.errors import BadValue

NO_REFERENCE = "the loss has no reference but the teacher"
MEANS = {"token": AGGREGATES["global_token_mean"], "sequence": AGGREGATES["sequence_mean"]}


def check_shares(config: object, *names: str) -> None:
    """Refuse settings that are no share.

    Raises:
        BadValue: a value is outside [0, 1].
    """
    for name in names:
        value = getattr(config, name)
        if not 0 <= value <= 1:
            raise BadValue(f"{type(config).__name__}.{name}={value!r}: expected 0 to 1")


@dataclass
class DivergenceConfig(RolloutConfig):
    """Settings that all trainers with a teacher share; `normalize` is none of TRL's.

    Raises:
        BadValue: see `BaseConfig`, or one of `shares` is outside [0, 1].
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **RolloutConfig.UNSUPPORTED,
        **UNREWARDED,
        "mask_truncated_completions": "all tokens of a completion are trained on",
        "rollout_policy": "the student samples",
        "sync_ref_model": NO_REFERENCE,
        "ref_model_mixup_alpha": NO_REFERENCE,
        "ref_model_sync_steps": NO_REFERENCE,
        "compare_sampler": "the loss does not read the probabilities of the sampler",
    }
    REMOVED: ClassVar[Mapping[str, str]] = {}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **RolloutConfig.CHOICES,
        "normalize": tuple(MEANS),
    }

    num_generations: int = option(1, "Completions of one prompt.")
    normalize: str = choice("token", MEANS, "What the loss is")

    def resolve(self) -> None:
        """Resolve the settings as of every method with rollouts, and check those of the loss.

        `remove_unused_columns` becomes False where completions of the data are read, as in TRL.
        """
        super().resolve()
        if self.reads_data:
            self.remove_unused_columns = False
        check_shares(self, *self.shares)

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return ()

    @property
    def loss_temperature(self) -> float:
        """Temperature of both models in the loss."""
        return self.temperature

    @property
    def divergence_beta(self) -> float:
        """The beta of the divergence D_beta in the loss: 1, the reverse KL."""
        return 1.0

    @property
    def has_ratio(self) -> bool:
        """False: a divergence has no ratio to the student that sampled."""
        return False

    @property
    def own_share(self) -> float:
        """Probability that a rollout is sampled by the student."""
        return 1.0

    @property
    def samples_teacher(self) -> bool:
        """True if the teacher samples the other rollouts; otherwise they are those of the data."""
        return False

    @property
    def reads_data(self) -> bool:
        """True if some rollouts are the completions of the data."""
        return self.own_share < 1 and not self.samples_teacher

    @property
    def longest_row(self) -> int | None:
        """Number of tokens to which a prompt and its completion in the data are cut."""
        return None
