"""Sampled tokens that are trained by their place in a completion: their part, weights and loss."""

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


def advantages_and_weights(
    logps: BT, teacher_logps: BT, inputs: Batch, args: IWOPDConfig
) -> tuple[BT, BT]:
    """Return log T - log S of sampled tokens and their `position_weights`, without gradient.

    S is the student that sampled them; arXiv 2606.22600.

    Raises:
        BadValue: a sampled token is impossible for the teacher.
    """
    check_possible(teacher_logps, inputs["completion_ids"], "distillation_objective='jsd'")
    advantages = teacher_logps.detach() - inputs.get(OLD, logps.detach())
    weights = position_weights(
        advantages,
        trained_mask(inputs),
        args.iw_opd_gamma,
        args.iw_opd_total,
        epsilon=args.iw_opd_epsilon,
        signed=args.iw_opd_signed,
    )
    return advantages, weights


def weight_sums(advantages: BT, weights: BT, mask: Mask) -> LossSums:
    """Return the logged sums of advantages and weights of trained tokens, under TRL's names."""
    trained, rows = mask.bool(), mask.bool().any(1)
    values = {
        "mean_advantage": advantages * weights,
        "mean_abs_advantage": advantages.abs(),
        "mean_weight": weights,
    }
    least, greatest = (weights.masked_fill(~trained, end)[rows] for end in (torch.inf, -torch.inf))
    return LossSums(
        {f"iw_opd/{name}": sum_and_count(x.double(), trained) for name, x in values.items()},
        {MIN: least.amin(1), MAX: greatest.amax(1)},
    )


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
