"""Sources of preferences between two completions: rewards, a reward model, or a judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.collect.reward_calls import RewardFunction
from core.collect.reward_sources import RewardSource
from core.preference.online_config import OnlineDPOConfig
from core.rewards.judged import Judged
from eval.errors import BadValue


@dataclass(frozen=True)
class MissingEnd:
    """-1 for a completion without any of the tokens `ends`, else 0."""

    ends: frozenset[int]

    def __call__(
        self, *, completion_ids: Sequence[Sequence[int]], **_: Any
    ) -> list[float]:  # Any: of the dataset
        """Look for an end token in each completion, not in its prompt."""
        return [-float(self.ends.isdisjoint(ids)) for ids in completion_ids]


def reward_sources(
    reward_funcs: RewardSource | list[RewardSource] | None,
    judge: Callable[..., Sequence[float]] | None,
    args: OnlineDPOConfig,
) -> RewardSource | list[RewardSource]:
    """Return what compares completions: reward functions, a model of the settings, or a judge.

    Raises:
        BadValue: there is not exactly one of them.
    """
    given = {
        "reward_funcs": reward_funcs or None,
        "reward_model_path": args.reward_model_path,
        "judge": None if judge is None else Judged(judge),
    }
    sources = {name: source for name, source in given.items() if source is not None}
    if len(sources) != 1:
        raise BadValue(
            f"found {' and '.join(sources) or 'no rewards and no judge'}: expected exactly one of "
            f"{', '.join(given)}"
        )
    return next(iter(sources.values()))


def has_judge(rewards: Sequence[RewardFunction], args: OnlineDPOConfig) -> bool:
    """Return whether a judge compares completions.

    Raises:
        BadValue: a judge has other rewards, weights or a penalty beside it.
    """
    if not any(getattr(f.call, "compares_pairs", False) for f in rewards):
        return False
    beside = ["reward_funcs"] if len(rewards) > 1 else []
    beside += [n for n in ("reward_weights", "missing_eos_penalty") if args.is_set(n)]
    if beside:
        raise BadValue(
            f"{beside[0]} beside a judge, whose chances are no rewards: leave one of them out"
        )
    return True
