"""Errors of training data, rewards and engines; `eval.errors` has those of names and files."""

from collections.abc import Iterable

from eval.errors import BadValue, ReproError


class RewardError(ReproError, ValueError):
    """Error of a reward function that failed or returned something that is no reward."""


class NotMeasured(BadValue):
    """Error of a quantity that is not defined for the answers it is measured on."""


class WrongType(BadValue, TypeError):
    """Error of an argument of the wrong type."""


class MissingColumn(ReproError, LookupError):
    """Error of a dataset that lacks a column that training needs."""

    def __init__(self, dataset: str, missing: Iterable[str], columns: Iterable[str], advice: str):
        super().__init__(
            f"{dataset} has no column {', '.join(map(repr, missing))}: found "
            f"{', '.join(map(repr, sorted(columns))) or 'none'}; {advice}"
        )


class EngineError(ReproError):
    """Error of a rollout engine that is away, fails or does not do what was requested."""


class HubError(ReproError):
    """Error of the Hugging Face hub, which is unreachable or refuses a request."""
