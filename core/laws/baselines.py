"""Laws of baselines: the advantages they give a group, and the bias and variance of the gradient.

All rewards of a group, or all answers of a policy, are enumerated; nothing is sampled.
"""

from collections.abc import Callable, Mapping
from itertools import product

import torch
from torch import Tensor

from core.losses.advantages import AGGREGATIONS
from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored
from core.losses.policy import policy_loss
from core.losses.returns import reward_to_go, whiten, with_kl

RATES = (0.1, 0.25, 0.5, 0.75, 0.9)  # at which a prompt is answered right
# (log-odds of the answers to one prompt, the reward of each)
PROMPTS = (
    ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    ((2.0, 0.5, -1.0), (1.0, 0.0, 0.0)),
    ((2.0, 0.5, -1.0), (0.0, 0.0, 1.0)),
    ((0.3, -0.2, 0.7, 0.0), (1.0, 1.0, 0.0, 0.3)),
)


def group_advantages(rewards: Tensor, scale: str = "none", estimator: str = "group") -> Tensor:
    """Return the advantages (G, K) that an estimator gives the rewards (G, K) of one rollout."""
    scored = Scored(rewards=rewards.reshape(-1, 1), group=rewards.size(1), length=1)
    weights = torch.ones(1, dtype=torch.float64)
    weighing = AdvantageSettings(weights=weights, scale=scale, aggregation="sum_then_normalize")
    return ESTIMATORS[estimator].advantages(scored, weighing).view_as(rewards)


def all_rewards(group: int) -> Tensor:
    """Return all 0/1 rewards of a group of K answers, shape (2 ** K, K)."""
    return torch.tensor(list(product((0.0, 1.0), repeat=group)), dtype=torch.float64)


def pair_advantages(scale: str) -> list[float]:
    """Return the advantages of both answers, for all four pairs of right and wrong ones."""
    return group_advantages(all_rewards(2), scale).flatten().tolist()


def pair_closed_form() -> list[float]:
    """Return the reward of each answer minus that of the other, for all four pairs."""
    pairs = all_rewards(2)
    return (pairs - pairs.flip(1)).flatten().tolist()


def expected_advantage(scale: str, group: int) -> list[float]:
    """Return E[A | right] and E[A | wrong] in a group, for a prompt at each of `RATES`."""
    right = torch.arange(group + 1).unsqueeze(1)  # of each possible group, the right ones first
    rewards = (torch.arange(group) < right).double()
    advantages = group_advantages(rewards, scale)
    expectations: list[float] = []
    for rate in RATES:
        other_answers = torch.distributions.Binomial(group - 1, torch.tensor(rate).double())
        weights = other_answers.log_prob(torch.arange(group).double()).exp()
        expectations += [float(weights @ advantages[1:, 0]), float(weights @ advantages[:-1, -1])]
    return expectations


def silent_share(group: int) -> list[float]:
    """Return the expected share of groups with equal rewards, at each rate p of `RATES`."""
    right = torch.arange(group + 1).unsqueeze(1)
    rewards = (torch.arange(group) < right).double()
    weights = torch.ones(1, dtype=torch.float64)
    combine = AGGREGATIONS["sum_then_normalize"].combine
    silent = [combine(row.view(-1, 1), weights, group, "group").zero_spread for row in rewards]
    shares: list[float] = []
    for rate in RATES:
        draws = torch.distributions.Binomial(group, torch.tensor(rate, dtype=torch.float64))
        chances = draws.log_prob(torch.arange(group + 1).double()).exp()
        shares.append(float(chances @ torch.tensor(silent, dtype=torch.float64)))
    return shares


def expected_of_pair() -> list[float]:
    """Return x - p for the rewards x = 1 and 0, at each rate p of `RATES`."""
    return [x - p for p in RATES for x in (1.0, 0.0)]


def expected_of_many() -> list[float]:
    """Return (x - p) / sqrt(p (1 - p)) for x = 1 and 0, at each rate p of `RATES`."""
    return [(x - p) / (p * (1 - p)) ** 0.5 for p in RATES for x in (1.0, 0.0)]


def pair_direction(scale: str) -> list[float]:
    """Return the cosine of two gradients by the logits, for each pair of right and wrong answer.

    The first gradient is that of the loss at ratio 1, the second that of log pi(wrong) / |wrong| -
    log pi(right) / |right|. Answers are all sequences of two or three tokens, over two tokens.
    """
    answers = [tokens for length in (2, 3) for tokens in product((0, 1), repeat=length)]
    pairs = [(right, wrong) for right in answers for wrong in answers if right != wrong]
    return [_cosine(right, wrong, scale) for right, wrong in pairs]


def _cosine(right: tuple[int, ...], wrong: tuple[int, ...], scale: str) -> float:
    logits = torch.tensor([[0.3, -0.5], [0.1, 0.8], [-0.4, 0.2]], dtype=torch.float64)
    logits.requires_grad_()
    mask = torch.tensor([[float(t < len(y)) for t in range(3)] for y in (right, wrong)])
    tokens = torch.tensor([[*y, 0][:3] for y in (right, wrong)])
    logps = logits.log_softmax(-1).expand(2, 3, 2).gather(2, tokens.unsqueeze(2)).squeeze(2) * mask
    rewards = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    loss = _loss(logps, mask, group_advantages(rewards, scale).view(2, 1))
    means = logps.sum(1) / mask.sum(1)
    (loss_gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (preference_gradient,) = torch.autograd.grad(means[1] - means[0], logits)
    return float(
        torch.cosine_similarity(loss_gradient.flatten(), preference_gradient.flatten(), dim=0)
    )


def _loss(logps: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """Return the policy loss at ratio 1: the mean over answers of the mean over their tokens."""
    answers = Rollout(logps=logps, old_logps=logps.detach(), advantages=advantages, mask=mask)
    return policy_loss(
        answers, PolicyConfig(loss_type="grpo"), Scale(rollout_tokens=mask.sum())
    ).loss


def mean_baseline_gap(group: int) -> float:
    """Return max |A - (K - 1) / K A'| over all 0/1 rewards of a group of K.

    A is the advantage against the mean of the group, A' that against the mean of the others.
    """
    rewards = all_rewards(group)
    leave_one_out_advantages = group_advantages(rewards, estimator="leave_one_out")
    return float(
        (group_advantages(rewards) - (group - 1) / group * leave_one_out_advantages).abs().max()
    )


def leave_one_out(policy: Tensor, rewards: Tensor, samples: Tensor) -> Tensor:
    """Return advantages (N, K) of the sampled answers against the mean of the others."""
    del policy
    return group_advantages(rewards[samples], estimator="leave_one_out")


def group_mean(policy: Tensor, rewards: Tensor, samples: Tensor) -> Tensor:
    """Return advantages (N, K) of the sampled answers against the mean of their group."""
    del policy
    return group_advantages(rewards[samples])


def constant(policy: Tensor, rewards: Tensor, samples: Tensor) -> Tensor:
    """Return advantages (N, K) of the sampled answers against the policy's expected reward."""
    return rewards[samples] - policy @ rewards


BASELINES: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "leave_one_out": leave_one_out,
    "group_mean": group_mean,
    "constant": constant,
}


def gradient_bias(baseline: str, group: int) -> list[float]:
    """Return the norm of the bias of the gradient estimate, for each of `PROMPTS`.

    That is |E[estimate] - d expected reward / d logits|.
    """
    return [_moments(baseline, group, *prompt)[0] for prompt in PROMPTS]


def gradient_variance(baseline: str, group: int) -> list[float]:
    """Return the total variance of the gradient estimate times the group size, by prompt.

    The factor makes groups of different sizes comparable at an equal number of samples.
    """
    return [_moments(baseline, group, *prompt)[1] * group for prompt in PROMPTS]


def _moments(
    baseline: str, group: int, odds: tuple[float, ...], answer_rewards: tuple[float, ...]
) -> tuple[float, float]:
    """Return the norm of the bias and the total variance over all draws of `group` answers."""
    logits = torch.tensor(odds, dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor(answer_rewards, dtype=torch.float64)
    (exact,) = torch.autograd.grad(logits.softmax(0) @ rewards, logits)
    policy = logits.detach().softmax(0)
    samples = torch.tensor(list(product(range(len(odds)), repeat=group)))
    weights = policy[samples].prod(1)
    logps = policy.log()[samples].view(-1, 1).requires_grad_()
    advantages = BASELINES[baseline](policy, rewards, samples).view(-1, 1)
    (by_answer,) = torch.autograd.grad(_loss(logps, torch.ones_like(logps), advantages), logps)
    scores = torch.eye(len(odds), dtype=torch.float64) - policy  # d log pi(y) / d logits
    estimates = -len(samples) * (by_answer.view(samples.shape).unsqueeze(2) * scores[samples]).sum(
        1
    )
    mean = weights @ estimates
    return float((mean - exact).norm()), float(weights @ (estimates - mean).square().sum(1))


def token_moments() -> list[float]:
    """Return |mean| and |std - 1| of whitened token advantages, for rollouts of several sizes.

    A token's reward is minus its KL, and the last token has the outcome as well; its advantage is
    the reward to go. arXiv 2501.03262.
    """
    moments: list[float] = []
    for answers, length in product((2, 5, 16), (3, 20)):
        draw = torch.Generator().manual_seed(answers * length)
        kl = torch.randn(answers, length, generator=draw, dtype=torch.float64)
        ends = torch.randint(1, length + 1, (answers, 1), generator=draw)
        mask = (torch.arange(length) < ends).double()
        outcomes = torch.randint(0, 2, (answers,), generator=draw).double()
        tokens = whiten(reward_to_go(with_kl(outcomes, kl, mask, 0.1), mask), mask)[mask.bool()]
        moments += [abs(float(tokens.mean())), abs(float(tokens.std()) - 1)]
    return moments


def easy_weight(scale: str) -> list[float]:
    """Return the spread of an easy prompt's advantages over that of a mixed one in one rollout.

    Half of the eight answers to the mixed prompt are right. Of the easy prompts, three have 1 to 3
    wrong answers, and the last has four rewards of 1 and four of 0.99.
    """
    mixed = [1.0] * 4 + [0.0] * 4
    easy = [[1.0] * (8 - wrong) + [0.0] * wrong for wrong in (1, 2, 3)] + [[1.0] * 4 + [0.99] * 4]
    groups = [torch.tensor([rewards, mixed], dtype=torch.float64) for rewards in easy]
    spreads = [group_advantages(pair, scale).std(1) for pair in groups]
    return [float(easy_spread / mixed_spread) for easy_spread, mixed_spread in spreads]
