"""Estimators of advantages of completions or tokens from the rewards of a rollout."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.losses.advantages import (
    AGGREGATIONS,
    Advantages,
    best_coefficient,
    correct_coefficient,
    leave_one_out,
    process_advantages,
    weighted_sum,
)
from core.losses.returns import gae, gae_of_two, reward_to_go, whiten, with_kl

# What an estimator may read beside rewards, as an error names it.
NEEDS = {
    "steps": "a reward of steps, such as StepAccuracy()",
    "kl": "the KL of each token to the reference, as GRPOTrainer has",
    "values": "values of tokens or prompts, as PPOTrainer and A2POTrainer have",
}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Rewards of all N completions of a rollout over all processes, and what else estimators read.

    Attributes:
        rewards: Rewards (N, F), NaN where a function did not apply.
        group: Completions per prompt; those of a prompt follow one another.
        length: Number of tokens of the longest completion.
        steps: Step rewards (N, S), NaN beyond the last step.
        ends: Index of the token that ends each step (N, S).
        tokens: Number of tokens that the policy wrote in each completion (N,).
        kl: log(pi / pi_ref) of each token (N, length).
        values: Value of each token (N, length), or of each prompt in the first column.
        penalties: An additional reward of each token (N, length).
        mask: 1 on trained tokens (N, length).
    """

    rewards: Tensor
    group: int
    length: int
    steps: Tensor | None = None
    ends: Tensor | None = None
    tokens: Tensor | None = None
    kl: Tensor | None = None
    values: Tensor | None = None
    penalties: Tensor | None = None
    mask: Tensor | None = None

    @property
    def token_counts(self) -> Tensor:
        """`tokens`, or a TypeError if they were not given."""
        if self.tokens is None:
            raise TypeError(
                "Scored.tokens is None: expected the number of tokens of each completion"
            )
        return self.tokens

    def take(self, rows: Tensor, group: int) -> "Scored":
        """Return the completions with indices `rows` (M,): whole groups of size `group`."""
        by_row = {name: x for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, group=group, **{name: x[rows] for name, x in by_row.items()})

    def only(self, function: int) -> "Scored":
        """Return a copy with the rewards of a single function, given by its index."""
        return replace(self, rewards=self.rewards[:, function : function + 1])


@dataclass(frozen=True, kw_only=True)
class AdvantageSettings:
    """Settings of how rewards become advantages.

    Attributes:
        weights: Weight of each reward function (F,).
        scale: A key of `SCALES`.
        aggregation: A key of `AGGREGATIONS`.
        kl_coef: Weight of the KL that is subtracted from rewards.
        bounds: Range to which weighted sums of rewards are clamped; None leaves them unclamped.
        gamma: Discount of `gae`.
        lam: lambda of `gae`.
        penalty_gamma: Discount of `Scored.penalties`.
    """

    weights: Tensor
    scale: str
    aggregation: str
    kl_coef: float = 0.0
    bounds: tuple[float, float] | None = None
    gamma: float = 1.0
    lam: float = 1.0
    penalty_gamma: float = 1.0


def standardise(scored: Scored, settings: AdvantageSettings) -> Advantages:
    """Return reward minus the group's mean, divided as `scale` says, and the spread."""
    row = AGGREGATIONS[settings.aggregation]
    return row.combine(scored.rewards, settings.weights, scored.group, settings.scale)


def group_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return (r - mean) / std within each group (N,)."""
    return standardise(scored, settings).values


def total_rewards(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the weighted sum of the rewards of each completion (N,), clamped to the bounds."""
    total = weighted_sum(scored.rewards, settings.weights)
    return total if settings.bounds is None else total.clamp(*settings.bounds)


def rewards_with_kl(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return R = r - kl_coef sum_t log(pi / pi_ref) of each completion (N,).

    arXiv 2402.14740 s2.
    """
    rewards = total_rewards(scored, settings)
    return rewards if scored.kl is None else rewards - settings.kl_coef * scored.kl.sum(1)


def leave_one_out_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the reward with KL minus the mean of the group's other completions (N,)."""
    rewards = rewards_with_kl(scored, settings).unsqueeze(1)
    alone = torch.ones_like(rewards[0])
    return leave_one_out(rewards, alone, scored.group, settings.scale).values


def best_of_group(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return 1 for the completion with the greatest reward of each group, else 0 (N,)."""
    return best_coefficient(rewards_with_kl(scored, settings), scored.group)


def token_rewards(scored: Scored, settings: AdvantageSettings) -> tuple[Tensor, Tensor]:
    """Return the reward of each token, and the mask of trained tokens; both have shape (N, length).

    It is -kl_coef times the KL of the token. The last trained token also gets the reward of the
    completion, less the penalties that are part of it; a missing reward is 0.

    Raises:
        TypeError: the rollout has no KL or no mask.
    """
    if scored.kl is None or scored.mask is None:
        raise TypeError("rewards of tokens need Scored.kl and Scored.mask")
    paid = total_rewards(scored, settings).nan_to_num(nan=0.0).to(scored.kl.dtype)
    if scored.penalties is not None:
        paid = paid - scored.penalties.sum(1)
    return with_kl(paid, scored.kl, scored.mask, settings.kl_coef), scored.mask


def reward_to_go_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the rewards to go of each token (N, length), whitened over all trained tokens."""
    tokens, mask = token_rewards(scored, settings)
    return whiten(reward_to_go(tokens, mask), mask)


def token_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the advantage of each token (N, length) over its value, by `gae`; see `gae_of_two`.

    Raises:
        TypeError: the rollout has no KL, mask or values.
    """
    tokens, mask = token_rewards(scored, settings)
    if scored.values is None:
        raise TypeError("advantages over values need Scored.values")
    rates = {"gamma": settings.gamma, "lam": settings.lam}
    if scored.penalties is None:
        return gae(tokens, scored.values, mask, **rates)
    penalties, discount = scored.penalties.to(tokens.dtype), settings.penalty_gamma
    return gae_of_two(tokens, penalties, scored.values, mask, penalty_gamma=discount, **rates)


def advantages_over_values(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the reward of each completion minus the value of its prompt (N,).

    Raises:
        TypeError: the rollout has no values.
    """
    if scored.values is None:
        raise TypeError("advantages over values need Scored.values")
    return (total_rewards(scored, settings) - scored.values[:, 0]).nan_to_num(nan=0.0)


def gae_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the `gae` advantages (N, length), whitened over all trained tokens."""
    return whiten(token_advantages(scored, settings), token_rewards(scored, settings)[1])


def correct_only(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return 1 for each completion with a positive reward, else 0 (N,)."""
    return correct_coefficient(scored.rewards, settings.weights)


def step_advantages(scored: Scored, settings: AdvantageSettings) -> Tensor:
    """Return the advantage of each token (N, length) from step rewards, see `process_advantages`.

    Raises:
        TypeError: the rollout has no step rewards.
    """
    if scored.steps is None or scored.ends is None:
        raise TypeError("process supervision needs step rewards: Scored.steps and Scored.ends")
    return process_advantages(
        scored.steps, scored.ends, scored.group, scored.length, settings.scale
    )


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A row of `ESTIMATORS`: a function from rewards to advantages, and what it depends on.

    Attributes:
        advantages: Returns advantages of completions (N,) or of tokens (N, length).
        needs: Keys of `NEEDS`: what the estimator reads beside the rewards.
        parameters: Names of the settings that have an effect with this estimator.
        least_group: Smallest number of completions per prompt; 2 if it compares completions of a
            group.
    """

    advantages: Callable[[Scored, AdvantageSettings], Tensor]
    doc: str
    needs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ("multi_objective_aggregation", "scale_rewards")
    least_group: int = 2


ESTIMATORS = {
    "group": Estimator(advantages=group_advantages, doc="reward minus the group's mean"),
    "process": Estimator(
        advantages=step_advantages,
        doc="summed step rewards, arXiv 2402.03300 s4.1.3",
        needs=("steps",),
        parameters=("scale_rewards",),
    ),
    "correct": Estimator(
        advantages=correct_only,
        doc="1 for a positive reward, else 0 (rejection-sampling fine-tuning)",
    ),
    "leave_one_out": Estimator(
        advantages=leave_one_out_advantages,
        doc="reward minus the mean of the group's other completions, arXiv 2402.14740",
        parameters=("kl_coef", "scale_rewards"),
    ),
    "best": Estimator(
        advantages=best_of_group,
        doc="1 for the greatest reward of its group, else 0 (RAFT), arXiv 2304.06767",
        parameters=("kl_coef",),
    ),
    "to_go": Estimator(
        advantages=reward_to_go_advantages,
        doc="rewards to go of tokens, whitened over all tokens (REINFORCE++), arXiv 2501.03262",
        needs=("kl",),
        parameters=("kl_coef",),
        least_group=1,
    ),
    "gae": Estimator(
        advantages=gae_advantages,
        doc="generalised advantages over a value model, whitened over all tokens, arXiv 1506.02438",
        needs=("kl", "values"),
        parameters=("kl_coef",),
        least_group=1,
    ),
    "value": Estimator(
        advantages=advantages_over_values,
        doc="reward minus the value of its prompt, arXiv 2505.20686",
        needs=("values",),
        parameters=(),
        least_group=1,
    ),
}
