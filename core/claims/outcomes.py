"""Measures of the trained policy: scores, accuracy at K, and quantities of its probabilities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar, get_args

from core.claims.measures import START, Measure, missing
from core.claims.needs import BadClaim, Need, Record

Vote: TypeAlias = Literal["avg", "maj", "pass", "distinct"]
T = TypeVar("T")


@dataclass(frozen=True)
class Score(Measure):
    """A score in percent, the mean over benchmarks, which have the names that the paper uses.

    At a small scale each is read from the suite that stands for it (`mirrors` in the record). `how`
    is metric, mode and temperature; `part` is a field of the problems and the value that counts.
    """

    benchmarks: tuple[str, ...]
    how: tuple[str, str, float] = ("top1", "cot", 0.0)
    part: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.benchmarks:
            raise BadClaim(f"{self}: expected at least one benchmark")

    def __str__(self) -> str:
        metric, mode, temperature = self.how
        details = [mode] if mode != "cot" else []
        details += [f"temperature {temperature:g}"] if temperature else []
        details += [" ".join(self.part)] if self.part else []
        return f"{metric}({', '.join([*self.benchmarks, *details])})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The score of each benchmark, which a record must hold."""
        by = self.part[0] if self.part else ""
        return tuple(Need("score", name, self.how, by) for name in self.benchmarks)

    @property
    def percent(self) -> bool:
        """True: scores and accuracies at K are percentages."""
        return True

    def stand(self, record: Record, arm: str) -> tuple[float, float]:
        """Return the score of the starting model and that of the arm."""
        return self.read(record, START), self.read(record, arm)

    def read(self, record: Record, arm: str) -> float:
        """Return the mean of the arm's scores, or of the starting model's for `start`."""
        key, rows = scores_of(record, arm), self.rows(record, arm)
        source = key if self == Score(self.benchmarks) else f"{self} in {key}"
        groups = rows if self.part is None else groups_of(rows, *self.part)
        return _mean_of(self.benchmarks, groups, lambda group: group["value"], record, arm, source)

    def rows(self, record: Record, arm: str) -> dict[str, Record]:
        """Return the scores of an arm with this metric, mode and temperature, by benchmark."""
        rows = record[scores_of(record, arm)]
        return {row["mirrors"]: row for row in rows if how_of(row) == self.how}


@dataclass(frozen=True)
class AtK(Measure):
    """Avg@K, Maj@K or Pass@K in percent, the mean over benchmarks; the largest K for None.

    With the vote "distinct" it is the number of different right answers among K of a problem. With
    `gained` it is the difference to the starting model.
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
        """Needs of samples, one for each benchmark, whatever `k` is."""
        return tuple(Need("samples", name) for name in self.benchmarks)

    @property
    def percent(self) -> bool:
        """True for accuracies at K, False for a number of answers."""
        return self.vote != "distinct"

    def stand(self, record: Record, arm: str) -> tuple[float, float] | None:
        """Return the accuracy at K of the starting model and of the arm, also for a gain."""
        if not self.percent:
            return None
        plain = replace(self, gained=False)
        return plain.read(record, START), plain.read(record, arm)

    def read(self, record: Record, arm: str) -> float:
        """Return the mean over the benchmarks, or its gain, for `arm` or `start`."""
        curves = {curve["mirrors"]: curve for curve in record["sampling"].values()}

        def value(curve: Mapping[str, Record]) -> float:
            after = self._at(curve["before" if arm == START else "after"], record, arm)
            return after - self._at(curve["before"], record, arm) if self.gained else after

        return _mean_of(self.benchmarks, curves, value, record, arm, "samples")

    def _at(self, row: Record, record: Record, arm: str) -> float:
        """Return the value at K; Avg@K equals Pass@1, the accuracy of one sample, on average."""
        if self.k is not None and self.k not in row["k"]:
            raise missing(record, arm, f"{self.vote}@{self.k}; its K are {row['k']}")
        if self.vote == "avg":
            return row["pass"][row["k"].index(1)]
        if self.vote not in row:
            raise missing(record, arm, f"{self.vote}@K")
        return row[self.vote][-1 if self.k is None else row["k"].index(self.k)]


@dataclass(frozen=True)
class Probability(Measure):
    """A measure of a quantity that is computed from the trained policy's probabilities."""

    name: str

    def __str__(self) -> str:
        return f"probability({self.name})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The quantity, which a record must hold."""
        return (Need("probabilities", self.name),)

    def read(self, record: Record, arm: str) -> float:
        """Return the value of the trained policy, or of the starting model for `start`."""
        quantity = record.get("probabilities", {}).get(self.name)
        if quantity is None:
            raise missing(record, arm, f"probabilities {self.name!r}")
        return quantity["before" if arm == START else "after"]


def scores_of(record: Record, arm: str) -> str:
    """Return the field of a record that has the scores of `arm`, or of `start`.

    A run without training has one set of scores, which are those of its starting model.
    """
    untrained = record.get("train", {}).get("steps") == 0
    return "start_scores" if arm == START and not untrained else "scores"


def groups_of(rows: Mapping[str, Record], field: str, value: str) -> dict[str, Record]:
    """Return the scores of problems whose field has a value, from rows that are split by it."""
    parts = {name: row["by"][field] for name, row in rows.items() if field in row.get("by", ())}
    return {name: part[value] for name, part in parts.items() if value in part}


def score(
    *benchmarks: str,
    metric: str = "top1",
    mode: str = "cot",
    temperature: float = 0.0,
    **part: object,
) -> Score:
    """Return the measure of the mean score over benchmarks in percent, greedy accuracy by default.

    An `Evaluation` of the paper must ask for this mode and temperature.

    Args:
        benchmarks: by the names that the paper uses.
        metric: such as `top1` or `avg@8`.
        mode: of answering.
        temperature: of sampling; 0 is greedy.
        part: at most one field of the problems; `level=6` counts problems of that level only.

    Raises:
        BadClaim: more than one field of the problems is given.
    """
    if len(part) > 1:
        raise BadClaim(f"score by {' and '.join(part)}: expected one field of the problems")
    field = next(((name, str(value)) for name, value in part.items()), None)
    return Score(benchmarks, (metric, mode, float(temperature)), field)


def how_of(row: Record) -> tuple[str, str, float]:
    """Return the metric, mode and temperature of a score's row in a record."""
    return row["metric"], row.get("mode", "cot"), float(row.get("temperature", 0.0))


def at_k(vote: Vote, *benchmarks: str, k: int | None = None) -> AtK:
    """Return the measure of accuracy at K (%): mean (`avg`), vote (`maj`) or any (`pass`).

    The vote `distinct` is the expected number of different right answers among K of a problem.
    """
    return AtK(vote, benchmarks, k)


def gain_at_k(vote: Vote, *benchmarks: str, k: int | None = None) -> AtK:
    """Return the measure of the rise of `at_k` over that of the starting model, in points."""
    return AtK(vote, benchmarks, k, gained=True)


def probability(name: str) -> Probability:
    """Return the measure of a quantity of the probabilities or rewards that a model gives to texts.

    Args:
        name: such as `nll` or `pairs/accuracy`, a name under `probabilities` in the record.
    """
    return Probability(name)


def _mean_of(
    names: tuple[str, ...],
    rows: Mapping[str, T],
    value: Callable[[T], float],
    record: Record,
    arm: str,
    source: str,
) -> float:
    absent = [name for name in names if name not in rows]
    if absent:
        raise missing(record, arm, f"{source} of {', '.join(absent)}")
    return sum(value(rows[name]) for name in names) / len(names)
