"""Rewards for the number of tokens: below a limit, or near a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval.errors import BadValue


@dataclass(frozen=True)
class SoftOverlong:
    """0 up to L_max - L_cache tokens, then falling linearly to -1 at L_max (arXiv 2503.14476).

    Eq. 13: ((L_max - L_cache) - L) / L_cache at length L for L_max - L_cache < L <= L_max, and -1
    beyond.
    """

    max_length: int
    cache: int

    def __post_init__(self):
        if not 0 < self.cache <= self.max_length:
            raise BadValue(
                f"{self}: expected 0 < cache <= max_length, the tokens over which the reward falls"
            )

    @property
    def __name__(self) -> str:
        return "soft_overlong"

    def __call__(
        self,
        *,
        completion_ids: Sequence[Sequence[int]],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's number of tokens."""
        return [overlong(len(ids), self.max_length, self.cache) for ids in completion_ids]


@dataclass(frozen=True)
class OverlongPunishment:
    """The same for any cache, under TRL's names; without one, 0 up to the limit and -1 beyond."""

    max_completion_len: int
    soft_punish_cache: int

    def __post_init__(self):
        if self.soft_punish_cache < 0:
            raise BadValue(f"{self}: expected soft_punish_cache of at least 0")

    @property
    def __name__(self) -> str:
        return "soft_overlong_punishment_reward"

    def __call__(
        self,
        completion_ids: Sequence[Sequence[int]],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's number of tokens."""
        limits = self.max_completion_len, self.soft_punish_cache
        return [overlong(len(ids), *limits) for ids in completion_ids]


def get_soft_overlong_punishment(
    max_completion_len: int, soft_punish_cache: int
) -> OverlongPunishment:
    """`OverlongPunishment` under TRL's name."""
    return OverlongPunishment(max_completion_len, soft_punish_cache)


def overlong(tokens: int, limit: int, cache: int) -> float:
    """Return 0, falling linearly to -1 over the last `cache` tokens before the limit."""
    if not cache:
        return -1.0 if tokens > limit else 0.0
    return max(-1.0, min(0.0, (limit - cache - tokens) / cache))


@dataclass(frozen=True)
class LengthWithin:
    """`within` for a completion of at most `limit` tokens, else `beyond`; arXiv 2601.05242."""

    limit: int
    within: float = 1.0
    beyond: float = 0.0

    def __post_init__(self):
        if self.limit < 1:
            raise BadValue(f"{self}: expected limit of at least 1 token")

    @property
    def __name__(self) -> str:
        return "length_within"

    def __call__(
        self,
        *,
        completion_ids: Sequence[Sequence[int]],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's number of tokens."""
        return [self.within if len(ids) <= self.limit else self.beyond for ids in completion_ids]


@dataclass(frozen=True)
class LengthTarget:
    """-`weight` times the tokens between a completion's length and its target; arXiv 2505.07291.

    The target is `target`, or unset that of the row, in the column `target_length`.
    """

    weight: float
    target: int | None = None

    def __post_init__(self):
        if not self.weight > 0:
            raise BadValue(f"{self}: expected weight above 0")

    @property
    def __name__(self) -> str:
        return "length_target"

    def __call__(
        self,
        *,
        completion_ids: Sequence[Sequence[int]],
        target_length: Sequence[int] | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's number of tokens."""
        if self.target is None and target_length is None:
            raise BadValue(f"{self}: set target, or give the data the column target_length")
        targets = target_length if self.target is None else [self.target] * len(completion_ids)
        pairs = zip(completion_ids, targets or (), strict=True)
        return [-self.weight * abs(target - len(ids)) for ids, target in pairs]
