"""Self-distillation with hints: the student with more in its prompt is its own teacher."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from core.families.distillation import Distillation, with_defaults
from core.families.family import Training, training_figures
from core.families.grpo import GRPO
from core.families.on_policy import OnPolicy
from core.families.ssd import SSD
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.grpo import GRPOConfig
    from core.distillation.distilling import DistillingTrainer
    from core.distillation.divergence_config import DivergenceConfig
    from core.distillation.sdpo_config import SDPOConfig
    from core.trainers.grpo import GRPOTrainer


class SDFT(Distillation):
    """Family of `SDFTTrainer`; its teacher sees the completion of a row, a demonstration."""

    name = "sdft"
    columns = ("prompt", "completion")
    listed_with = Distillation.name
    trained_by = "self-distillation"
    roles = ()
    profiles = with_defaults(SSD.profiles, "cpu", data="pocket-worked")
    teacher_quantities = ()
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Accept every config: a student that is its own teacher needs no role."""
        del config, rewards, roles

    def rows_of(self, training: Training) -> Any:  # Any: a dataset
        """Return the training data with completions under the name of what the teacher sees."""
        return training.rows.rename_column("completion", "privileged_context")

    def config_class(self) -> "type[DivergenceConfig]":
        """Import the config class."""
        from core.distillation.sdft_config import SDFTConfig

        return SDFTConfig

    def trainer_class(self) -> "type[DistillingTrainer]":
        """Import the trainer class."""
        from core.distillation.sdft import SDFTTrainer

        return SDFTTrainer


class SDPO(GRPO):
    """Family of `SDPOTrainer`; a reward with a method `feedback` writes feedback, too."""

    name = "sdpo"
    listed_with = Distillation.name
    trained_by = "self-distillation"
    figures = training_figures(
        {
            "reward": "mean reward",
            "self_distillation/distillation_loss": "loss of a token (nats)",
            "self_distillation/reprompt_sample_fraction": "share of completions with a hint",
            "entropy": "entropy (nats/token)",
        }
    )
    progress = (
        ("reward", "reward", "{:.3f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("self_distillation/reprompt_sample_fraction", "with a hint", "{:.2f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if rewards and weights do not match, or no reward writes the feedback.

        Raises:
            BadValue: they do not, or none does.
        """
        OnPolicy.check(self, config, rewards, roles)
        c = cast("SDPOConfig", config)
        if c.include_environment_feedback and not feedback_of(rewards):
            raise BadValue(
                "include_environment_feedback=True, and no reward has a method `feedback`: add "
                "one that writes it, or leave the setting out"
            )

    def arguments(self, training: Training) -> Mapping[str, object]:
        """Return the methods `feedback` of the rewards, where feedback is read."""
        c = cast("SDPOConfig", training.config)
        is_read = c.include_environment_feedback
        return {"feedback_funcs": feedback_of(training.rewards)} if is_read else {}

    def config_class(self) -> "type[GRPOConfig]":
        """Import the config class."""
        from core.distillation.sdpo_config import SDPOConfig

        return SDPOConfig

    def trainer_class(self) -> "type[GRPOTrainer]":
        """Import the trainer class."""
        from core.distillation.sdpo import SDPOTrainer

        return SDPOTrainer


def feedback_of(rewards: Sequence[Reward]) -> list[Callable[..., Any]]:  # Any: read by the trainer
    """Return the methods `feedback` of those rewards that have one."""
    return [cast(Any, reward).feedback for reward in rewards if hasattr(reward, "feedback")]
