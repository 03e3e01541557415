"""A*-PO: regresses the log-ratio to the reference on rewards beyond the values of prompts."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from core.collect.generation import Generated
from core.collect.metrics import sum_and_count
from core.configs.a2po import A2POConfig
from core.data.streams import columns_of
from core.errors import MissingColumn
from core.forward.batches import Batch
from core.losses.aggregate import Scale
from core.losses.batch import Rollout
from core.losses.estimators import Scored
from core.losses.kl import k3
from core.losses.policy import PolicyLoss
from core.losses.regression import implicit_rewards, squared_regression
from core.trainers.grpo import GRPOTrainer
from core.trainers.prompts import Rows

COLUMN = "optimal_value"
REGRESSION = {
    "title": "Accelerating RL for LLM Reasoning with Optimal Advantage Regression",
    "id": "2505.20686",
    "citation": """@misc{brantley2025accelerating,
  title = {Accelerating {RL} for {LLM} Reasoning with Optimal Advantage Regression},
  author = {Kiant{\\'e} Brantley and Mingyu Chen and Zhaolin Gao and Jason D. Lee and Wen Sun and
            Wenhao Zhan and Xuezhou Zhang},
  year = {2025},
  eprint = {2505.20686},
  archivePrefix = {arXiv},
}""",
}


class A2POTrainer(GRPOTrainer):
    """Optimal advantage regression, arXiv 2505.20686: its second stage.

    The first one, the values of prompts, is in the data's column `optimal_value`.
    """

    args: A2POConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    gives = ("values",)
    settings = A2POConfig
    _name = "A2PO"
    _tag_names = ("a2po",)
    _paper = REGRESSION

    def __init__(self, *args: Any, **keywords: Any):
        super().__init__(*args, **keywords)
        self.logged = ()
        columns = columns_of(self.train_dataset)
        if COLUMN not in columns:
            advice = "make it with a preparation of the family optimal-value"
            raise MissingColumn("train_dataset", [COLUMN], columns, advice)

    def score(self, rows: Rows, generated: Generated) -> Scored:
        """Rewards, and the value of each completion's prompt (N, 1)."""
        values = torch.tensor([row[COLUMN] for row in rows], device=self.args.device)
        found = self.gather(values)
        self.record({COLUMN: found.double().mean().item()})
        return replace(super().score(rows, generated), values=found.unsqueeze(1))

    def objective(self, r: Rollout, scale: Scale) -> PolicyLoss:
        """The mean over completions of (beta2 log(pi / pi_ref) - (r - V*))^2."""
        each = squared_regression(self.implicit(r), r.advantages[:, 0])
        loss = self.args.aggregate.mean(each.unsqueeze(1).expand_as(r.logps), r.mask, scale)
        return PolicyLoss(loss=loss, ratio=r.log_ratio.exp(), kl=k3(r.logps, self.other(r)))

    def beyond(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:
        """Nothing; but both sides of the regression are logged."""
        both = {"implicit_reward": self.implicit(r).detach(), "advantage": r.advantages[:, 0]}
        sums = {name: sum_and_count(x, torch.ones_like(x)) for name, x in both.items()}
        self.seen[-1].totals.update(sums)
        return super().beyond(r, inputs, scale)

    def implicit(self, r: Rollout) -> Tensor:
        """The reward of each completion that its log-ratio stands for."""
        return implicit_rewards(r.logps, self.other(r), r.mask, self.args.beta2)

    def other(self, r: Rollout) -> Tensor:
        """Log-probabilities of the reference, which `compare` has added."""
        if r.ref_logps is None:
            raise TypeError("a regression on the log-ratio needs the reference")
        return r.ref_logps
