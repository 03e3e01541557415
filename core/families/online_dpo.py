"""Online preferences: two answers to each prompt are sampled, and told apart by a reward or judge.

The judge of a run is a reward `Judged(judge)`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from core.families.family import training_figures
from core.families.grpo import GRPO
from core.families.on_policy import OnPolicy
from core.families.preference_pairs import PREFERENCE
from core.paper import Reward

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preference.nash_md import NashMDTrainer
    from core.preference.online_config import NashMDConfig, OnlineDPOConfig
    from core.preference.online_dpo import OnlineDPOTrainer
    from core.preference.xpo import XPOTrainer

UNUSED = ("num_generations",)  # of GRPO's profiles: a prompt has two answers


def pair_profiles(batches: Mapping[str, int]) -> Mapping[str, Mapping[str, object]]:
    """Return the profiles of GRPO with pairs: as many prompts of a micro-batch at each scale."""
    kept = {
        scale: {name: value for name, value in profile.items() if name not in UNUSED}
        for scale, profile in GRPO.profiles.items()
    }
    sizes = {scale: {"per_device_train_batch_size": size} for scale, size in batches.items()}
    return {scale: {**profile, **sizes.get(scale, {})} for scale, profile in kept.items()}


class OnlineDPO(GRPO):
    """Family of `OnlineDPOTrainer`."""

    name = "online_dpo"
    listed_with = ""
    group = PREFERENCE
    profiles = pair_profiles({"cpu": 32, "gpu": 16})
    progress = (
        ("reward", "reward", "{:.3f}"),
        ("rewards/margins", "margin", "{:.3f}"),
        ("objective/kl", "KL", "{:.4f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "reward": "mean reward",
            "completions/mean_length": "completion length (tokens)",
            "rewards/margins": "margin of implicit rewards (nats)",
            "objective/kl": "KL to reference (nats)",
        }
    )

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if rewards and weights do not match.

        Raises:
            BadValue: they do not; the message has the reason.
        """
        OnPolicy.check(self, config, rewards, roles)

    def config_class(self) -> "type[OnlineDPOConfig]":  # pyright: ignore[reportIncompatibleMethodOverride] - of pairs
        """Import the config class."""
        from core.preference.online_config import OnlineDPOConfig

        return OnlineDPOConfig

    def trainer_class(self) -> "type[OnlineDPOTrainer]":  # pyright: ignore[reportIncompatibleMethodOverride] - of pairs
        """Import the trainer class."""
        from core.preference.online_dpo import OnlineDPOTrainer

        return OnlineDPOTrainer


class XPO(OnlineDPO):
    """Family of `XPOTrainer`, listed with online DPO."""

    name = "xpo"
    listed_with = "online_dpo"

    def config_class(self) -> "type[OnlineDPOConfig]":
        """Import the config class."""
        from core.preference.online_config import XPOConfig

        return XPOConfig

    def trainer_class(self) -> "type[XPOTrainer]":
        """Import the trainer class."""
        from core.preference.xpo import XPOTrainer

        return XPOTrainer


class NashMD(OnlineDPO):
    """Family of `NashMDTrainer`."""

    name = "nash_md"
    progress = tuple(
        ("loss/kl", "KL", "{:.4f}") if row[0] == "objective/kl" else row
        for row in OnlineDPO.progress
    )
    figures = training_figures(
        {
            "reward": "mean reward",
            "completions/mean_length": "completion length (tokens)",
            "rewards/probabilities": "preference over the mixture",
            "loss/kl": "KL to reference (nats)",
        }
    )

    def config_class(self) -> "type[NashMDConfig]":
        """Import the config class."""
        from core.preference.online_config import NashMDConfig

        return NashMDConfig

    def trainer_class(self) -> "type[NashMDTrainer]":  # pyright: ignore[reportIncompatibleMethodOverride] - no loss of pairs
        """Import the trainer class."""
        from core.preference.nash_md import NashMDTrainer

        return NashMDTrainer
