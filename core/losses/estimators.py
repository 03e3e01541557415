"""From the rewards of a rollout to the advantages of its completions or of their tokens."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from core.losses.advantages import (
    AGGREGATIONS,
    Advantages,
    correct_coefficient,
    leave_one_out,
    process_advantages,
)

# What an estimator may need of a rollout, in the words of an error.
NEEDS = {
    "steps": "a reward of steps, such as StepAccuracy()",
    "kl": "the KL of each token to the reference",
    "values": "the value of each token by a value model",
}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """All N completions of a rollout, over all processes, in groups of `group`.

    `rewards` (N, F) are NaN where a function did not apply; `steps` and `ends` (N, S) are the step
    rewards and the tokens that end the steps. No completion has more than `length` tokens, and of
    each the policy wrote `tokens` (N,).
    """

    rewards: Tensor
    group: int
    length: int
    steps: Tensor | None = None
    ends: Tensor | None = None
    tokens: Tensor | None = None

    @property
    def token_counts(self) -> Tensor:
        """`tokens`, where they are needed."""
        if self.tokens is None:
            raise TypeError("lengths need the tokens of each completion")
        return self.tokens

    def take(self, rows: Tensor, group: int) -> "Scored":
        """Some of the completions (M,), whole groups of `group`."""
        by_row = (self.steps, self.ends, self.tokens)
        steps, ends, tokens = (None if x is None else x[rows] for x in by_row)
        rewards = self.rewards[rows]
        return replace(self, rewards=rewards, group=group, steps=steps, ends=ends, tokens=tokens)

    def only(self, function: int) -> "Scored":
        """With the rewards of one function."""
        return replace(self, rewards=self.rewards[:, function : function + 1])


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """How rewards become advantages: the trainer's fields."""

    weights: Tensor
    scale: str
    aggregation: str


def standardised(scored: Scored, weighing: Weighing) -> Advantages:
    """Reward minus the group's mean, scaled; and the spread, which every estimator reports."""
    row = AGGREGATIONS[weighing.aggregation]
    return row.combine(scored.rewards, weighing.weights, scored.group, weighing.scale)


def by_group(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per completion (N,)."""
    return standardised(scored, weighing).values


def by_others(scored: Scored, weighing: Weighing) -> Tensor:
    """One advantage per completion (N,)."""
    return leave_one_out(scored.rewards, weighing.weights, scored.group, weighing.scale).values


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
    that act with it and may not with another.
    """

    advantages: Callable[[Scored, Weighing], Tensor]
    doc: str
    needs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ("multi_objective_aggregation",)


ESTIMATORS = {
    "group": Estimator(advantages=by_group, doc="reward minus the group's mean"),
    "process": Estimator(
        advantages=by_step,
        doc="summed step rewards, arXiv 2402.03300 s4.1.3",
        needs=("steps",),
        parameters=(),
    ),
    "correct": Estimator(
        advantages=by_correctness,
        doc="1 for a positive reward, else 0 (rejection-sampling fine-tuning)",
    ),
    "leave_one_out": Estimator(
        advantages=by_others,
        doc="reward minus the mean of the others of its group, arXiv 2402.14740",
        parameters=(),
    ),
}
