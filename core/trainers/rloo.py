"""RLOO: REINFORCE on whole completions with the mean reward of the group's others as baseline."""

import torch
from torch import Tensor

from core.collect.metrics import Metrics
from core.configs.rloo import RLOOConfig
from core.losses.advantages import group_spread
from core.losses.estimators import Scored, rewards_with_kl
from core.trainers.grpo import GRPOTrainer
from core.trainers.publish import PAPERS


class RLOOTrainer(GRPOTrainer):
    """Leave-one-out REINFORCE, arXiv 2402.14740, with the interface of TRL's `RLOOTrainer`.

    The ratio is that of whole completions, and the KL is part of the reward. A truncated completion
    that is masked counts 0 in the value of the loss, where TRL counts its advantage; its gradient
    is 0 in both.
    """

    args: RLOOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = RLOOConfig
    _name = "RLOO"
    _tag_names = ("rloo",)
    _paper = PAPERS["RLOO"]

    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of rewards without KL, less `frac_reward_zero_std`.

        `advantages` records it from rewards with KL.
        """
        metrics = super().scores(scored)
        metrics.pop("frac_reward_zero_std", None)
        return metrics

    def advantages(self, scored: Scored) -> Tensor:
        """Return the advantages of the completions (N,)."""
        spread = group_spread(
            rewards_with_kl(scored, self.advantage_settings).view(-1, scored.group)
        )
        none = torch.isclose(spread, torch.zeros_like(spread))
        self.record({"frac_reward_zero_std": none.float().mean().item()})
        return super().advantages(scored)
