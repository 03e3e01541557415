"""Sampled tokens that are trained by their place in a completion: their part, weights and loss."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.collect.metrics import LossSums, sum_and_count
from core.distillation.distilling import OLD
from core.distillation.iw_opd_config import IWOPDConfig
from core.distillation.sampled_tokens import check_possible
from core.forward.batches import Batch, trained_mask
from core.losses.loss_statistics import Statistic
from core.losses.token_weights import position_weights
from core.shapes import BT, Mask

MIN, MAX = "iw_opd/min_weight", "iw_opd/max_weight"
EXTREMES = (
    Statistic(name=MIN, values=lambda _, weights, __: weights, extreme=torch.min),
    Statistic(name=MAX, values=lambda _, weights, __: weights, extreme=torch.max),
)


@dataclass(frozen=True)
class WeightedTokens:
    """Advantages of sampled tokens with their weights, without gradient; arXiv 2606.22600.

    Attributes:
        advantages: log T - log S of each token (B, T) under the student that sampled.
        weights: The weights of `position_weights` (B, T).
        mask: 1 on trained tokens (B, T).
    """

    advantages: BT
    weights: BT
    mask: Mask

    def sums(self) -> LossSums:
        """Return the logged sums of advantages and weights, under TRL's names."""
        mask = self.mask.bool()
        values = {
            "mean_advantage": self.advantages * self.weights,
            "mean_abs_advantage": self.advantages.abs(),
            "mean_weight": self.weights,
        }
        least, greatest = (
            self.weights.masked_fill(~mask, end)[mask.any(1)] for end in (torch.inf, -torch.inf)
        )
        return LossSums(
            {f"iw_opd/{name}": sum_and_count(x.double(), mask) for name, x in values.items()},
            {MIN: least.amin(1), MAX: greatest.amax(1)},
        )


def weighted_tokens(
    logps: BT, teacher_logps: BT, inputs: Batch, args: IWOPDConfig
) -> WeightedTokens:
    """Return the sampled tokens of a piece with their advantages and weights.

    Args:
        logps: The student's log-probabilities of the tokens.
        teacher_logps: The teacher's.
        inputs: The piece.
        args: Settings of the trainer.

    Raises:
        BadValue: a sampled token is impossible for the teacher.
    """
    check_possible(teacher_logps, inputs["completion_ids"], "distillation_objective='jsd'")
    advantages = teacher_logps.detach() - inputs.get(OLD, logps.detach())
    mask = trained_mask(inputs)
    weights = position_weights(
        advantages,
        mask,
        args.iw_opd_gamma,
        args.iw_opd_total,
        epsilon=args.iw_opd_epsilon,
        signed=args.iw_opd_signed,
    )
    return WeightedTokens(advantages, weights, mask)


def within_part(mask: Mask, first: float, last: float) -> Tensor:
    """Return whether each token lies between two shares of its completion (B, T).

    Parts of the same share have the same number of tokens, up to rounding.
    """
    lengths = mask.sum(1, keepdim=True).double()
    places = torch.arange(mask.size(1), device=mask.device)
    return (places >= (first * lengths).round()) & (places < (last * lengths).round())


def surrogate(logps: BT, old_logps: BT | None, advantages: BT, args: IWOPDConfig) -> BT:
    """Return A log S, or with `epsilon` the clipped surrogate of each token, to be maximised.

    With `dual_clip` a negative advantage is multiplied by that ratio at most; arXiv 1912.09729.
    """
    if args.epsilon is None:
        return advantages * logps
    ratio = (logps - (logps.detach() if old_logps is None else old_logps)).exp()
    clipped = ratio.clamp(1 - args.epsilon, 1 + args.epsilon)
    least = torch.min(ratio * advantages, clipped * advantages)
    if args.dual_clip is None:
        return least
    return torch.where(advantages < 0, torch.max(least, args.dual_clip * advantages), least)
