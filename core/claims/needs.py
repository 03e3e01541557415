"""Types that claims share: records of runs, what they must hold, and the errors of claims."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from eval.errors import ReproError
from eval.json_lines import JsonFields

Record: TypeAlias = JsonFields  # of any kind
Runs: TypeAlias = Mapping[str, Record]  # the records of one seed, by arm
Kind: TypeAlias = Literal["runs", "simulated", "exact"]
PREPARED = "prepared:"  # before the name of a preparation, in place of that of a model or data set


class BadClaim(ReproError, ValueError):
    """A claim is written in a way that cannot be judged."""


class MissingMeasure(ReproError, LookupError):
    """A record does not hold what a measure reads."""


@dataclass(frozen=True)
class Need:
    """A curve, score or other content that a record must hold.

    A curve is named by its metric, a score, samples and texts of answers by their benchmark,
    probabilities by the quantity that is computed from them. Of a score, `how` is its metric, mode
    and temperature, and `by` the field of the problems by which it is split.
    """

    kind: Literal["curve", "score", "samples", "probabilities", "setting", "texts"]
    name: str
    how: tuple[str, str, float] = ("top1", "cot", 0.0)
    by: str = ""


class Stand(NamedTuple):
    """A percentage that a claim reads, the mean over the seeds before training and after it."""

    what: str
    before: float
    after: float
