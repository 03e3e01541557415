"""A*-PO: regresses the log-ratio to the reference on rewards minus the values of prompts."""

from dataclasses import replace

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
from core.trainers.publish import PAPERS

COLUMN = "optimal_value"


class A2POTrainer(GRPOTrainer):
    """Trainer of the second stage of optimal advantage regression, arXiv 2505.20686.

    The first stage estimates the values of prompts, which the data has as the column
    `optimal_value`.
    """

    args: A2POConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    gives = ("values",)
    settings = A2POConfig
    _name = "A2PO"
    _tag_names = ("a2po",)
    _paper = PAPERS["A2PO"]

    def set_up(self) -> None:
        """Log no statistics of ratios, which the loss has none of.

        Raises:
            MissingColumn: the data has no values of prompts.
        """
        self.logged = ()
        columns = columns_of(self.train_dataset)
        if COLUMN not in columns:
            advice = "make it with a preparation of the family optimal-value"
            raise MissingColumn("train_dataset", [COLUMN], columns, advice)

    def score(self, rows: Rows, generated: Generated) -> Scored:
        """Return the rewards with the value of each completion's prompt (N, 1)."""
        values = torch.tensor([row[COLUMN] for row in rows], device=self.args.device)
        prompt_values = self.gather(values)
        self.record({COLUMN: prompt_values.double().mean().item()})
        return replace(super().score(rows, generated), values=prompt_values.unsqueeze(1))

    def objective(self, r: Rollout, scale: Scale) -> PolicyLoss:
        """Return the mean over completions of (beta2 log(pi / pi_ref) - (r - V*))^2."""
        errors = squared_regression(self.implicit_rewards(r), r.advantages[:, 0])
        loss = self.args.aggregate.mean(errors.unsqueeze(1).expand_as(r.logps), r.mask, scale)
        return PolicyLoss(
            loss=loss, ratio=r.log_ratio.exp(), kl=k3(r.logps, self.reference_logps(r))
        )

    def extra_loss(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:
        """Log both sides of the regression; the loss itself is unchanged."""
        sides = {
            "implicit_reward": self.implicit_rewards(r).detach(),
            "advantage": r.advantages[:, 0],
        }
        sums = {name: sum_and_count(x, torch.ones_like(x)) for name, x in sides.items()}
        self.seen[-1].totals.update(sums)
        return super().extra_loss(r, inputs, scale)

    def implicit_rewards(self, r: Rollout) -> Tensor:
        """Return beta2 sum_t log(pi / pi_ref), the implicit reward of each completion (B,)."""
        return implicit_rewards(r.logps, self.reference_logps(r), r.mask, self.args.beta2)

    def reference_logps(self, r: Rollout) -> Tensor:
        """Return the reference's log-probabilities (B, T), which `compare` has added.

        Raises:
            TypeError: the rollout has none.
        """
        if r.ref_logps is None:
            raise TypeError("a regression on the log-ratio needs the reference")
        return r.ref_logps
