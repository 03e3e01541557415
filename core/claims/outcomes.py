"""Measures of the trained policy: scores, samples at K, and quantities of its probabilities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from core.claims.measures import START, Measure, missing
from core.claims.needs import BadClaim, Need, Record

Vote: TypeAlias = Literal["avg", "maj", "pass"]
T = TypeVar("T")


@dataclass(frozen=True)
class Score(Measure):
    """A score in percent, the mean over benchmarks by the names that the paper uses.

    At a small scale each is read from the suite that stands for it (`mirrors` in the record). `how`
    is its metric, mode and temperature; `part` a field of the problems and the value that counts.
    """

    benchmarks: tuple[str, ...]
    how: tuple[str, str, float] = ("top1", "cot", 0.0)
    part: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.benchmarks:
            raise BadClaim(f"{self}: expected at least one benchmark")

    def __str__(self) -> str:
        metric, mode, temperature = self.how
        said = [mode] if mode != "cot" else []
        said += [f"temperature {temperature:g}"] if temperature else []
        said += [" ".join(self.part)] if self.part else []
        return f"{metric}({', '.join([*self.benchmarks, *said])})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """A score of every benchmark."""
        by = self.part[0] if self.part else ""
        return tuple(Need("score", name, self.how, by) for name in self.benchmarks)

    @property
    def percent(self) -> bool:
        """It is one."""
        return True

    def stand(self, record: Record, arm: str) -> tuple[float, float]:
        """The starting model's score and the arm's."""
        return self.read(record, START), self.read(record, arm)

    def read(self, record: Record, arm: str) -> float:
        """Mean of the scores; the starting model's own for `start`.

        Where nothing is trained the scores are the starting model's.
        """
        untrained = record.get("train", {}).get("steps") == 0
        key = "start_scores" if arm == START and not untrained else "scores"
        rows = {row["mirrors"]: row for row in record[key] if how_of(row) == self.how}
        what = key if self == Score(self.benchmarks) else f"{self} in {key}"
        if self.part is None:
            return _mean_of(self.benchmarks, rows, lambda row: row["value"], record, arm, what)
        field, value = self.part
        parts = {name: row["by"][field] for name, row in rows.items() if field in row.get("by", ())}
        found = {name: groups[value] for name, groups in parts.items() if value in groups}
        return _mean_of(self.benchmarks, found, lambda group: group["value"], record, arm, what)


@dataclass(frozen=True)
class AtK(Measure):
    """Avg@K, Maj@K or Pass@K in percent, the mean over benchmarks; the largest K for None.

    `gained` takes off what the starting model has.
    """

    vote: Vote
    benchmarks: tuple[str, ...]
    k: int | None
    gained: bool = False

    def __post_init__(self) -> None:
        if (
            self.vote not in get_args(Vote)
            or not self.benchmarks
            or not (self.k is None or self.k > 0)
        ):
            raise BadClaim(
                f"{self}: expected {', '.join(get_args(Vote))}, at least one benchmark, K above 0"
            )

    def __str__(self) -> str:
        name = f"{self.vote}@{'K' if self.k is None else self.k}({', '.join(self.benchmarks)})"
        return f"gain in {name}" if self.gained else name

    @property
    def needs(self) -> tuple[Need, ...]:
        """Samples of every benchmark."""
        return tuple(Need("samples", name) for name in self.benchmarks)

    @property
    def percent(self) -> bool:
        """It is one."""
        return True

    def stand(self, record: Record, arm: str) -> tuple[float, float]:
        """The accuracy at K of the starting model and of the arm, gained or not."""
        plain = replace(self, gained=False)
        return plain.read(record, START), plain.read(record, arm)

    def read(self, record: Record, arm: str) -> float:
        """Mean over the benchmarks."""
        found = {curve["mirrors"]: curve for curve in record["sampling"].values()}

        def value(curve: Mapping[str, Record]) -> float:
            after = self._at(curve["before" if arm == START else "after"], record, arm)
            return after - self._at(curve["before"], record, arm) if self.gained else after

        return _mean_of(self.benchmarks, found, value, record, arm, "samples")

    def _at(self, row: Record, record: Record, arm: str) -> float:
        """The value at K; the mean accuracy of K samples is, on average, that of one: Pass@1."""
        if self.k is not None and self.k not in row["k"]:
            raise missing(record, arm, f"{self.vote}@{self.k}; its K are {row['k']}")
        if self.vote == "avg":
            return row["pass"][row["k"].index(1)]
        return row[self.vote][-1 if self.k is None else row["k"].index(self.k)]


@dataclass(frozen=True)
class Probability(Measure):
    """A quantity that is computed from the policy's probabilities once it is trained."""

    name: str

    def __str__(self) -> str:
        return f"probability({self.name})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The quantity."""
        return (Need("probabilities", self.name),)

    def read(self, record: Record, arm: str) -> float:
        """The trained policy's value; the starting model's own for `start`."""
        found = record.get("probabilities", {}).get(self.name)
        if found is None:
            raise missing(record, arm, f"probabilities {self.name!r}")
        return found["before" if arm == START else "after"]


def score(
    *benchmarks: str,
    metric: str = "top1",
    mode: str = "cot",
    temperature: float = 0.0,
    **part: object,
) -> Score:
    """Mean score over `benchmarks` in percent: greedy accuracy, unless something else is asked.

    It reads what an `Evaluation` of the paper asks in this mode and at this temperature. One
    keyword more is a field of the problems: `level=6` counts those of that level alone.
    """
    if len(part) > 1:
        raise BadClaim(f"score by {' and '.join(part)}: expected one field of the problems")
    field = next(((name, str(value)) for name, value in part.items()), None)
    return Score(benchmarks, (metric, mode, float(temperature)), field)


def how_of(row: Mapping[str, Any]) -> tuple[str, str, float]:
    """The metric, mode and temperature of a score's row in a record."""
    return row["metric"], row.get("mode", "cot"), float(row.get("temperature", 0.0))


def at_k(vote: Vote, *benchmarks: str, k: int | None = None) -> AtK:
    """Accuracy of K samples in percent: their mean (`avg`), their vote (`maj`) or any (`pass`)."""
    return AtK(vote, benchmarks, k)


def gain_at_k(vote: Vote, *benchmarks: str, k: int | None = None) -> AtK:
    """How much `at_k` rises over the starting model's."""
    return AtK(vote, benchmarks, k, gained=True)


def probability(name: str) -> Probability:
    """A quantity of the probabilities, or the rewards, that a model gives to texts.

    Such as `nll` or `pairs/accuracy`; it is read from `probabilities` in the record, by name, as
    `before` and `after`.
    """
    return Probability(name)


def _mean_of(
    names: tuple[str, ...],
    found: Mapping[str, T],
    value: Callable[[T], float],
    record: Record,
    arm: str,
    what: str,
) -> float:
    absent = [name for name in names if name not in found]
    if absent:
        raise missing(record, arm, f"{what} of {', '.join(absent)}")
    return sum(value(found[name]) for name in names) / len(names)
