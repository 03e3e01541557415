"""Differences between two recorded runs: settings, ends of curves, scores and single answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.records.metric_names import key_of, temperature_of
from core.records.run_samples import read_run_samples
from core.records.schema import RunRecord, ScoreRow
from core.settings.canonical import as_text
from eval.samples.store import Sample
from eval.stats.comparisons import Comparison, compare_scores


@dataclass(frozen=True)
class ChangedAnswer:
    """Two answers to one problem, exactly one of them right; `won` if it is the second run's."""

    problem: str
    won: bool
    before: Sample
    after: Sample


@dataclass(frozen=True)
class ScoreChange:
    """A score that both runs have, and how it differs.

    `difference` is the test of the difference, and `changed` the answers that only one run has
    right. Both stay empty for a score over several answers at once (`maj@K`, `pass@K`).
    """

    before: ScoreRow
    after: ScoreRow
    difference: Comparison | None = None
    changed: Sequence[ChangedAnswer] = ()


def settings_apart(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, str, str]]:
    """Yield name, old value and new value of each setting that differs; `-` if it is not set."""
    for name in ("paper", "scale", "arm", "seed", "start_model"):
        if before[name] != after[name]:
            yield name, str(before[name]), str(after[name])
    old, new = before["config"], after["config"]
    for name in sorted(old.keys() | new.keys()):
        values = [
            as_text(config[name]["value"]) if name in config else "-" for config in (old, new)
        ]
        if values[0] != values[1]:
            yield name, values[0], values[1]


def ends_apart(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, float, float]]:
    """Yield metric, old and new last value of each curve of both runs that ends differently."""
    for name in sorted(before["curves"].keys() & after["curves"].keys()):
        old, new = (run["curves"][name] for run in (before, after))
        if old and new and old[-1][1] != new[-1][1]:
            yield name, old[-1][1], new[-1][1]


def scores_apart(before: RunRecord, after: RunRecord) -> Iterator[ScoreChange]:
    """Yield each score that both runs have, compared problem by problem.

    Raises:
        MissingFile, DamagedFile: a file of samples is missing or is not what was written.
    """
    for old in before["scores"]:
        for new in after["scores"]:
            if settings_of(old) != settings_of(new):
                continue
            if not is_share(old["metric"]):
                yield ScoreChange(old, new)
            else:
                samples = [
                    read_run_samples(run, row["digest"])
                    for run, row in ((before, old), (after, new))
                ]
                changes = list(changed_answers(*samples))
                yield ScoreChange(old, new, compare_scores(*samples), changes)


def is_share(metric: str) -> bool:
    """Return whether a metric is the share of right answers."""
    return metric == "top1" or metric.startswith("avg@")


def settings_of(row: ScoreRow) -> tuple[object, ...]:
    """Return the benchmark, mode, metric and temperature, which comparable scores share."""
    return *key_of(row), temperature_of(row)


def changed_answers(before: Sequence[Sample], after: Sequence[Sample]) -> Iterator[ChangedAnswer]:
    """Yield the pairs of answers to the same problem of which exactly one is right."""
    new_samples = {(sample.id, sample.sample): sample for sample in after}
    for old in before:
        new = new_samples.get((old.id, old.sample))
        if new is not None and (old.correct is True) != (new.correct is True):
            yield ChangedAnswer(old.id, new.correct is True, old, new)
