"""From the rewards of a rollout to the advantages of its completions or of their tokens."""

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
from core.losses.returns import gae, gae_of_two, to_go, whitened, with_kl

# What an estimator may need of a rollout, in the words of an error.
NEEDS = {
    "steps": "a reward of steps, such as StepAccuracy()",
    "kl": "the KL of each token to the reference, as GRPOTrainer has",
    "values": "values of tokens or prompts, as PPOTrainer and A2POTrainer have",
}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """All N completions of a rollout, over all processes, in groups of `group`.

    `rewards` (N, F) are NaN where a function did not apply; `steps` and `ends` (N, S) are the step
    rewards and the tokens that end the steps. No completion has more than `length` tokens, and of
    each the policy wrote `tokens` (N,). Of each token (N, length) `kl` is the log of the policy's
    probability over the reference's, `values` what a value model expects, `penalties` a reward of
    its own, and `mask` 1 where it is trained on.
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
        """`tokens`, where they are needed."""
        if self.tokens is None:
            raise TypeError("lengths need the tokens of each completion")
        return self.tokens

    def take(self, rows: Tensor, group: int) -> "Scored":
        """Some of the completions (M,), whole groups of `group`."""
        by_row = {name: x for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, group=group, **{name: x[rows] for name, x in by_row.items()})

    def only(self, function: int) -> "Scored":
        """With the rewards of one function."""
        return replace(self, rewards=self.rewards[:, function : function + 1])


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """How rewards become advantages: the trainer's fields.

    `kl_coef` is what a KL in the reward costs, and `bounds` what sums of rewards are kept within.
    `gamma` and `lam` are those of `gae`, and `penalty_gamma` is the discount of penalties.
    """

    weights: Tensor
    scale: str
    aggregation: str
    kl_coef: float = 0.0
    bounds: tuple[float, float] | None = None
    gamma: float = 1.0
    lam: float = 1.0
    penalty_gamma: float = 1.0


def standardised(scored: Scored, weighing: Weighing) -> Advantages:
    """Reward minus the group's mean, scaled; and the spread, which every estimator reports."""
    row = AGGREGATIONS[weighing.aggregation]
    return row.combine(scored.rewards, weighing.weights, scored.group, weighing.scale)


def by_group(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per completion (N,)."""
    return standardised(scored, weighing).values


def outcomes(scored: Scored, weighing: Weighing) -> Tensor:
    """The weighted sum of the rewards of each completion within the bounds (N,)."""
    total = weighted_sum(scored.rewards, weighing.weights)
    return total if weighing.bounds is None else total.clamp(*weighing.bounds)


def shaped(scored: Scored, weighing: Weighing) -> Tensor:
    """R = r - kl_coef sum_t log(pi / pi_ref) of each completion (N,); arXiv 2402.14740 s2."""
    rewards = outcomes(scored, weighing)
    return rewards if scored.kl is None else rewards - weighing.kl_coef * scored.kl.sum(1)


def by_others(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per completion (N,)."""
    rewards = shaped(scored, weighing).unsqueeze(1)
    alone = torch.ones_like(rewards[0])
    return leave_one_out(rewards, alone, scored.group, weighing.scale).values


def by_best(scored: Scored, weighing: Weighing) -> Tensor:
    """1 for the completion of each group with the greatest reward, else 0 (N,)."""
    return best_coefficient(shaped(scored, weighing), scored.group)


def paid_tokens(scored: Scored, weighing: Weighing) -> tuple[Tensor, Tensor]:
    """What each token is paid without its penalty, and which are trained on, both (N, length).

    The reward of a completion has the sum of its penalties, which are not paid twice.
    """
    if scored.kl is None or scored.mask is None:
        raise TypeError("rewards of tokens need their KL and their mask")
    paid = outcomes(scored, weighing).nan_to_num(nan=0.0).to(scored.kl.dtype)
    if scored.penalties is not None:
        paid = paid - scored.penalties.sum(1)
    return with_kl(paid, scored.kl, scored.mask, weighing.kl_coef), scored.mask


def by_tokens_ahead(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per token (N, length), whitened over all of them."""
    tokens, mask = paid_tokens(scored, weighing)
    return whitened(to_go(tokens, mask), mask)


def gains(scored: Scored, weighing: Weighing) -> Tensor:
    """What each token (N, length) brings beyond its value, by `gae`, or of two where penalised."""
    tokens, mask = paid_tokens(scored, weighing)
    if scored.values is None:
        raise TypeError("advantages against values need the values")
    rates = {"gamma": weighing.gamma, "lam": weighing.lam}
    if scored.penalties is None:
        return gae(tokens, scored.values, mask, **rates)
    penalties, other = scored.penalties.to(tokens.dtype), weighing.penalty_gamma
    return gae_of_two(tokens, penalties, scored.values, mask, penalty_gamma=other, **rates)


def beyond_value(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per completion (N,)."""
    if scored.values is None:
        raise TypeError("advantages against values need the values")
    return (outcomes(scored, weighing) - scored.values[:, 0]).nan_to_num(nan=0.0)


def by_values(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per token (N, length), whitened over all of them."""
    found = gains(scored, weighing)
    return whitened(found, paid_tokens(scored, weighing)[1])


def by_correctness(scored: Scored, weighing: Weighing) -> Tensor:
    """1 for a completion with a positive reward, else 0 (N,)."""
    return correct_coefficient(scored.rewards, weighing.weights)


def by_step(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per token (N, length)."""
    if scored.steps is None or scored.ends is None:
        raise TypeError("process supervision needs step rewards")
    return process_advantages(
        scored.steps, scored.ends, scored.group, scored.length, weighing.scale
    )


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A row of `ESTIMATORS`.

    `needs` are keys of `NEEDS`: what it reads beside the rewards. `parameters` are the settings
    that act with it and may not with another. `least_group` is how many completions of a prompt it
    takes at least: 2 where it compares them.
    """

    advantages: Callable[[Scored, Weighing], Tensor]
    doc: str
    needs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ("multi_objective_aggregation", "scale_rewards")
    least_group: int = 2


ESTIMATORS = {
    "group": Estimator(advantages=by_group, doc="reward minus the group's mean"),
    "process": Estimator(
        advantages=by_step,
        doc="summed step rewards, arXiv 2402.03300 s4.1.3",
        needs=("steps",),
        parameters=("scale_rewards",),
    ),
    "correct": Estimator(
        advantages=by_correctness,
        doc="1 for a positive reward, else 0 (rejection-sampling fine-tuning)",
    ),
    "leave_one_out": Estimator(
        advantages=by_others,
        doc="reward minus the mean of the others of its group, arXiv 2402.14740",
        parameters=("kl_coef", "scale_rewards"),
    ),
    "best": Estimator(
        advantages=by_best,
        doc="1 for the greatest reward of its group, else 0 (RAFT), arXiv 2304.06767",
        parameters=("kl_coef",),
    ),
    "to_go": Estimator(
        advantages=by_tokens_ahead,
        doc="rewards of tokens to go, whitened over all tokens (REINFORCE++), arXiv 2501.03262",
        needs=("kl",),
        parameters=("kl_coef",),
        least_group=1,
    ),
    "gae": Estimator(
        advantages=by_values,
        doc="generalised advantages against a value model, likewise whitened, arXiv 1506.02438",
        needs=("kl", "values"),
        parameters=("kl_coef",),
        least_group=1,
    ),
    "value": Estimator(
        advantages=beyond_value,
        doc="reward minus the value of its prompt, arXiv 2505.20686",
        needs=("values",),
        parameters=(),
        least_group=1,
    ),
}
