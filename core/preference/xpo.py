"""Exploratory preference optimisation, arXiv 2405.21046: online DPO and a bonus of exploration."""

from collections.abc import Mapping

import torch
from torch import Tensor

from core.collect.generation import Generated
from core.collect.metrics import Metrics
from core.forward.batches import Batch
from core.losses.online import exploration, online_dpo_losses
from core.losses.paired_answers import Answers
from core.preference.online_config import XPOConfig
from core.preference.online_dpo import OnlineDPOTrainer
from core.preference.online_trainer import alternate, end_shares
from core.rewards.completions import Completion
from core.trainers.publish import PAPERS


class XPOTrainer(OnlineDPOTrainer):
    """Trainer of pairs of a completion of the policy and one of the reference.

    It has the interface of `XPOTrainer` of TRL 1.13, and a `judge` as `OnlineDPOTrainer`. The loss
    of a pair is that of online DPO plus `alpha` times the log-probability of the reference's
    completion, whichever of the two is preferred.
    """

    args: XPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = XPOConfig
    _name = "XPO"
    _tag_names = ("xpo",)
    _paper = PAPERS["XPO"]

    @property
    def alpha(self) -> float:
        """Weight of the exploration in this epoch."""
        return self.at_epoch("alpha")

    def generate(self, prompts: list[Completion]) -> Generated:
        """Sample the first completion of each pair from the policy, the second from the reference.

        Raises:
            BadValue: see `sample`.
        """
        seeds = self.seeds(prompts)
        with self.phases("rollout"):
            own = self.sample_from(self.policy(), prompts[::2], seeds[::2])
            others = self.sample_from(self.reference(), prompts[1::2], seeds[1::2])
        return alternate(own, others)

    def losses(self, answers: Answers, inputs: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the losses of the pairs of a piece, and the values (n,) of each metric."""
        advantages, scores = inputs["advantages"].to(answers.logps.dtype), inputs["scores"]
        result = online_dpo_losses(answers, advantages, self.args.loss_type, self.beta)
        bonus = exploration(answers, self.alpha)
        return result.losses + bonus, {
            **self.metrics(answers, result, advantages),
            "loss/dpo": result.losses,
            "loss/xpo": bonus,
            "logps/reference": (answers.logps * answers.mask).sum(1)[1::2],
            "objective/model_scores": scores[::2],
            "objective/ref_scores": scores[1::2],
            "objective/scores_margin": scores[::2] - scores[1::2],
            "alpha": torch.full_like(bonus, self.alpha),
        }

    def end_metrics(self, has_end: Tensor) -> Metrics:
        """Return which completions of the policy and of the reference have an end token."""
        return end_shares(has_end)
