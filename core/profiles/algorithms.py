"""Algorithms of a profile: papers, arms, classes of trainers, and settings on top of GRPO."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from core.paper import Reward
from core.paper.page import AT, FAMILY, ONLY_AT
from core.profiles.entries import ENTRIES, SCALE
from core.profiles.trainings import Settings, Training
from core.settings.layers import REGIME

REWARDS = "rewards"
# Settings that act only where the sampler is not the policy, and trainings where it is not.
OF_ANOTHER_SAMPLER = "vllm_importance_sampling_"
OTHER_SAMPLER = frozenset({"rollout_lag", "rollout_bits"})
UNCORRECTED: Settings = {f"{OF_ANOTHER_SAMPLER}correction": False}  # unless an algorithm corrects
Rewarding: TypeAlias = Callable[[tuple[Reward, ...]], tuple[Reward, ...]]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """An algorithm to profile.

    Attributes:
        name: Its name on pages and in records.
        family: The family whose trainer it uses.
        settings: The fields of the trainer's config that make it differ from the bases of a world.
        trainer: A class that replaces the family's trainer, as `trainer=` takes it; empty for none.
        rewarding: A function that replaces the rewards of a training; None leaves them.
    """

    name: str
    family: str = "grpo"
    settings: Settings = field(default_factory=dict[str, object])
    trainer: str = ""
    rewarding: Rewarding | None = None

    def arm(self, training: Training) -> dict[str, object]:
        """Return this algorithm in a training, as an arm of a paper."""
        if OTHER_SAMPLER & training.changes.keys():
            own = {**UNCORRECTED, **self.settings}
        else:
            own = {n: v for n, v in self.settings.items() if not n.startswith(OF_ANOTHER_SAMPLER)}
        trainer = {"trainer": self.trainer} if self.trainer else {}
        entry = ENTRIES[self.family].settings(training)
        settings = {**entry, **own, **trainer, **training.changes}
        if self.rewarding is not None:
            settings[REWARDS] = self.rewarding(training.rewards)
        return {
            FAMILY: self.family,
            ONLY_AT: SCALE,
            AT: {SCALE: {REGIME: training.regime, **settings}},
        }

    def enters(self, training: Training) -> bool:
        """Return whether the algorithm can be trained in the world of a training."""
        entry = ENTRIES.get(self.family)
        return entry is not None and entry.takes(training)
