"""Laws of the weight of a token or an answer in a loss: exact gradients and advantages."""

from itertools import product

import torch

from core.losses.advantages import AGGREGATIONS, normalise
from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss
from core.losses.supervised import SUPERVISED

LIMIT = 128  # the length limit of the answers, in tokens


def token_weight(loss_type: str, length: int, level: str = "token") -> float:
    """Return |d loss / d log pi| at a token of a wrong answer (A = -1) at ratio 1.

    Args:
        loss_type: of `PolicyConfig`.
        length: of the answer, in tokens.
        level: of the ratio, `importance_sampling_level` of `PolicyConfig`.
    """
    logps = torch.zeros(1, length, dtype=torch.float64, requires_grad=True)
    answer = Rollout(
        logps=logps,
        old_logps=logps.detach(),
        advantages=-torch.ones(1, 1, dtype=torch.float64),
        mask=torch.ones(1, length),
    )
    scale = Scale(rollout_tokens=torch.tensor(float(length)), max_length=LIMIT)
    c = PolicyConfig(loss_type=loss_type, importance_sampling_level=level)
    loss = policy_loss(answer, c, scale).loss
    return float(torch.autograd.grad(loss, logps)[0][0, 0].abs())


def minority_weight(scale: str, right: int, group: int) -> float:
    """Return the largest |A| in a group with `right` rewards of 1 and the rest 0."""
    rewards = torch.tensor([1.0] * right + [0.0] * (group - right), dtype=torch.float64)
    sizes = (
        AGGREGATIONS["sum_then_normalize"]
        .combine(rewards.unsqueeze(1), torch.ones(1, dtype=torch.float64), group, scale)
        .values.abs()
    )
    return float(sizes.max())


def leave_one_out_gap(group: int) -> float:
    """Return max |G / (G - 1) A_i - (r_i - mean of the others)| over all 0/1 rewards of G answers.

    A is the advantage without a divisor, RLOO's but for a constant; arXiv 2503.20783 app. A.
    """
    rewards = torch.tensor(list(product((0.0, 1.0), repeat=group)), dtype=torch.float64)
    advantages = normalise(rewards, "none")[0] * group / (group - 1)
    mean_of_others = (rewards.sum(1, keepdim=True) - rewards) / (group - 1)
    return float((advantages - (rewards - mean_of_others)).abs().max())


PROBABILITIES = (0.001, 0.017, 0.1, 0.367, 0.5, 0.786, 0.999)


def gradient_norms(loss_type: str) -> list[float]:
    """Return |d loss / d logits| at one token, for each of `PROBABILITIES` of that token."""
    return [_gradient_norm(loss_type, probability) for probability in PROBABILITIES]


def probabilities() -> list[float]:
    """Return `PROBABILITIES`."""
    return list(PROBABILITIES)


def _gradient_norm(loss_type: str, probability: float) -> float:
    other_probability = (1 - probability) / 3  # of each of three other tokens
    logits = torch.tensor(
        [probability, other_probability, other_probability, other_probability], dtype=torch.float64
    ).log()
    logits.requires_grad_()
    loss = SUPERVISED[loss_type].loss(logits.log_softmax(-1)[:1]).sum()
    return float(torch.autograd.grad(loss, logits)[0].square().sum().sqrt())
