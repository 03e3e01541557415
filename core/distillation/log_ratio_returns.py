"""Rewards log T - log S of a student's tokens: numbers of both models, and returns."""

import torch
from torch import Tensor

from core.distillation.minillm_config import CURRENT, MiniLLMConfig
from core.distillation.sampled_tokens import check_possible
from core.forward.batches import Batch, trained_mask
from core.forward.two_heads import entropy_of
from core.losses.divergence import kl
from core.losses.returns import later_rewards, mean_of_later_rewards
from core.shapes import BT

LOGP, ENTROPY, OWN, OTHER, APART = range(5)  # columns of `numbers_at_kd_temperature`


def numbers_at_kd_temperature(
    logps: Tensor, teacher_logps: Tensor, tokens: Tensor, args: MiniLLMConfig
) -> Tensor:
    """Return five numbers of each token (N, 5) from both models' log-probabilities (N, V).

    They are its log-probability and the entropy, and at `kd_temperature` the log-probabilities
    of the token under both models and their reverse KL.
    """
    heat = args.temperature / args.kd_temperature
    pair = (logps, teacher_logps)
    own, other = pair if heat == 1 else ((heat * x).log_softmax(-1) for x in pair)
    of_token = (x.gather(-1, tokens[:, None])[:, 0] for x in (logps, own, other))
    logp, own_logp, other_logp = of_token
    entropy = entropy_of(logps, learned=args.rewards_entropy)
    return torch.stack([logp, entropy, own_logp, other_logp, kl(own, other)], dim=-1)


def log_ratio_returns(numbers: Tensor, inputs: Batch, args: MiniLLMConfig) -> BT:
    """Return the returns of the rewards log T - log S of each token, without gradient.

    Args:
        numbers: The numbers of `numbers_at_kd_temperature` (B, T, 5).
        inputs: The batch.
        args: Settings of the trainer.

    Raises:
        BadValue: a sampled token is impossible for the teacher.
    """
    own, other = numbers[..., OWN].detach(), numbers[..., OTHER].detach()
    check_possible(other, inputs["completion_ids"], "rkl_advantage=False")
    of = mean_of_later_rewards if args.length_normalization else later_rewards
    has_own = args.return_from == CURRENT
    return of(other - own, trained_mask(inputs), gamma=args.gamma, has_own=has_own)
