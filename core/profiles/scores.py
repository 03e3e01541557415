"""Scores of profiles: differences to another algorithm in units of each probe's own mechanism."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from core.claims.gates import DROP
from core.profiles.effects import EFFECTS
from core.profiles.mechanisms import PLAIN
from core.profiles.probes import PROBES, Probe
from core.profiles.record import ROOM
from core.records.places import Shelf
from core.records.record import Record, current, read_records
from eval.stats.probe_scores import (
    PairEffect,
    ProbeScore,
    Scores,
    differences,
    interquartile_mean,
    pair_effect,
    probability_of_improvement,
    probe_score,
    stratified_interval,
)

LEAST_GAIN = 0.5  # of the gain of the other algorithm: an algorithm with less has not learnt


@dataclass(frozen=True, kw_only=True)
class Row:
    """A probe of a profile against another algorithm.

    Attributes:
        probe: The probe.
        value: The mean of the measure over the seeds; None if there is none.
        base: That of the other algorithm.
        difference: By how much it is better, in the unit of the measure.
        score: The same in units of the effect of the probe's mechanism; None without one.
        values: The score of each seed.
        reason: Why there is no score, in words; empty if there is one.
        statistic: The mean of the probe's statistic; None if it is not measured.
        rates: The learning rates of the two; both 0 if unknown.
        below_start: The names of those of the two that end below their start, see `DROP`.
    """

    probe: Probe
    value: float | None = None
    base: float | None = None
    difference: ProbeScore | None = None
    score: ProbeScore | None = None
    values: tuple[float, ...] = ()
    reason: str = ""
    statistic: float | None = None
    rates: tuple[float, float] = (0.0, 0.0)
    below_start: tuple[str, ...] = ()

    @property
    def has_equal_rates(self) -> bool:
        """Return whether both algorithms were trained at one learning rate."""
        return self.rates[0] == self.rates[1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return explanations of the score other than the algorithm, as short texts."""
        other_rate = () if self.has_equal_rates else ("at another rate",)
        return (*other_rate, *(f"{name} ends below its start" for name in self.below_start))

    @property
    def sign(self) -> int | None:
        """Return 1 for a score interval above 0, -1 below 0, 0 around it; None without a score."""
        if self.score is None:
            return None
        return (1 if self.score.value > 0 else -1) if self.score.is_apart else 0


@dataclass(frozen=True, kw_only=True)
class Aggregates:
    """Aggregates over the probes with a score, each with its 95 % interval."""

    mean: ProbeScore
    improvement: ProbeScore


def profiles(shelf: Shelf = Shelf.HERE) -> dict[str, list[Record]]:
    """Return the records of profiles by algorithm, the oldest first."""
    by_algorithm: dict[str, list[Record]] = {}
    for record in current(read_records(ROOM, shelf)):
        by_algorithm.setdefault(record["arm"], []).append(record)
    return by_algorithm


def values_of(records: Sequence[Record], probe: str) -> dict[float, float]:
    """Return the value of a probe by seed, from the record with the most seeds, the newest first.

    It is empty if no record has values.
    """
    rows = [dict(zip(row["seeds"], row["values"], strict=True)) for row in rows_of(records, probe)]
    return max(reversed(rows), key=len, default={})


def rows_of(records: Sequence[Record], probe: str) -> list[Mapping[str, list[float]]]:
    """Return the fields of a probe with values of its measure from the records that hold it."""
    measure = str(PROBES[probe].measure)
    rows = (record["probes"].get(probe, {}) for record in records)
    return [row for row in rows if "values" in row and row.get("measure", measure) == measure]


def effect_of(probe: Probe, archive: Mapping[str, Sequence[Record]]) -> PairEffect | None:
    """Return the effect of a probe's mechanism, published or else recorded here; None if neither.

    Args:
        probe: The probe.
        archive: The records of profiles by algorithm.
    """
    return EFFECTS.get(probe.name) or recorded_effect(probe, archive)


def recorded_effect(probe: Probe, archive: Mapping[str, Sequence[Record]]) -> PairEffect | None:
    """Return the effect of a probe's mechanism in records; None if its pair has not two seeds."""
    with_it, without = (values_of(rows, probe.name) for rows in pair_records(probe, archive))
    shared = [seed for seed in with_it if seed in without]
    if len(shared) < 2:
        return None
    pairs = [with_it[s] for s in shared], [without[s] for s in shared]
    return pair_effect(differences(*pairs, falls=probe.falls))


def pair_records(
    probe: Probe, archive: Mapping[str, Sequence[Record]]
) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the records of the two algorithms of a probe's pair, made on one processor if any."""
    first, second = (
        [record for record in archive.get(one.name, ()) if rows_of([record], probe.name)]
        for one in probe.pair
    )
    if not first or not second:
        return first, second
    made = [record["kernels"] for record in second]
    shared = next((r for r in reversed(first) if r["kernels"] in made), first[-1])
    return same_processor(first, shared), same_processor(second, shared)


def same_processor(records: Sequence[Record], record: Record) -> Sequence[Record]:
    """Return the records with the kernels and processor of `record`; all records if none has them.

    The start of a seed differs in rounding between processors, and so does what is trained from it.
    """
    return [one for one in records if one["kernels"] == record["kernels"]] or records


def score_rows(record: Record, base: Record, archive: Mapping[str, Sequence[Record]]) -> list[Row]:
    """Return the probes of a profile that the other algorithm has too, with their scores."""
    shared = [name for name in PROBES if name in record["probes"] and name in base["probes"]]
    return [score_row(PROBES[name], record, base, archive) for name in shared]


def score_row(
    probe: Probe, record: Record, base: Record, archive: Mapping[str, Sequence[Record]]
) -> Row:
    """Return one probe of a profile with its score."""
    for one in (record, base):
        if reason := one["probes"][probe.name].get("reason"):
            return Row(probe=probe, reason=f"{one['arm']}: {reason}")
    values, base_values = values_of([record], probe.name), values_of([base], probe.name)
    seeds = [seed for seed in values if seed in base_values]
    if len(seeds) < 2:
        return Row(probe=probe, reason="the two have fewer than two seeds in common")
    own, other = (list(map(each.__getitem__, seeds)) for each in (values, base_values))
    apart = differences(own, other, falls=probe.falls)
    row = Row(
        probe=probe,
        value=fmean(own),
        base=fmean(other),
        difference=probe_score(apart, 1.0),
        statistic=statistic_of(probe, archive, base),
        rates=(rate_of(record, probe), rate_of(base, probe)),
        below_start=tuple(one["arm"] for one in (record, base) if gain(one, probe.place) < -DROP),
    )
    effect = effect_of(probe, archive)
    reason = missing_score(row, record, base, effect)
    if effect is None or reason:
        return replace(row, reason=reason)
    scores = tuple(value / effect.value for value in apart)
    return replace(row, score=probe_score(apart, effect.value), values=scores)


def rate_of(record: Record, probe: Probe) -> float:
    """Return the learning rate at which a profile trains for a probe."""
    return probe.training.faster * record["rates"][probe.training.base]["best"]


def statistic_of(
    probe: Probe, archive: Mapping[str, Sequence[Record]], base: Record
) -> float | None:
    """Return the mean of a probe's statistic in plain GRPO, else in the other algorithm."""
    plain = () if base["arm"] == PLAIN.name else archive.get(PLAIN.name, ())
    records = (base, *plain)
    rows = [row["statistic"] for row in rows_of(records, probe.name) if row["statistic"]]
    return fmean(rows[-1]) if rows else None


def missing_score(row: Row, record: Record, base: Record, effect: PairEffect | None) -> str:
    """Return why a probe has no score, in words; empty if it has one."""
    probe = row.probe
    if effect is None:
        return f"its pair, {probe.mechanism} and {probe.without}, is not recorded"
    if not effect.is_admitted:
        return f"{probe.mechanism} differs from {probe.without} by {effect.ratio:.1f} errors only"
    if row.statistic is not None and not probe.statistic.holds(row.statistic):
        return f"expected {probe.statistic}, found {row.statistic:.3g}"
    if probe.after_learning:
        gains = [gain(one, probe.place) for one in (record, base)]
        if gains[0] < LEAST_GAIN * gains[1]:
            return f"did not learn: {gains[0]:+.1f} points, {base['arm']} {gains[1]:+.1f}"
    return ""


def gain(record: Record, training: str) -> float:
    """Return the gain in accuracy of a training in points, the mean over the seeds."""
    ends = [run["accuracy"] for run in record["trainings"][training]["runs"]]
    return fmean(after - before for before, after in ends)


def aggregates(rows: Sequence[Row]) -> Aggregates | None:
    """Return the aggregates over the probes that have scores of several seeds; None without any."""
    scores: Scores = [row.values for row in rows if len(row.values) > 1]
    if not scores:
        return None
    both = (interquartile_mean, probability_of_improvement)
    means = [ProbeScore(float(f(scores)), *stratified_interval(scores, f)) for f in both]
    return Aggregates(mean=means[0], improvement=means[1])
