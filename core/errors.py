"""Errors of training data, rewards and engines; those of names, values and files are eval's."""

from collections.abc import Iterable

from eval.errors import BadValue, ReproError


class RewardError(ReproError):
    """A reward function failed or returned something that is no reward."""


class WrongType(BadValue, TypeError):
    """A value of another type than an argument takes."""


class MissingColumn(ReproError, LookupError):
    """A dataset without a column that training needs."""

    def __init__(self, dataset: str, missing: Iterable[str], found: Iterable[str], why: str):
        super().__init__(
            f"{dataset} has no column {', '.join(map(repr, missing))}: found "
            f"{', '.join(map(repr, sorted(found))) or 'none'}; {why}"
        )


class EngineError(ReproError):
    """A rollout engine that is away, fails, or does not do what it was asked."""


class HubError(ReproError):
    """The Hugging Face hub cannot be reached, or refuses what it is sent."""
