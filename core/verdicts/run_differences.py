"""Two recorded runs held against each other: settings, curves, scores and single answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.records.places import samples_file
from core.records.schema import RunRecord, ScoreRow
from core.settings.canonical import as_text
from eval.samples.store import Sample, read_samples
from eval.stats.comparisons import Comparison, compare_scores


@dataclass(frozen=True)
class ChangedAnswer:
    """Two answers to one problem of which one alone is right; `won` if that is the second run's."""

    problem: str
    won: bool
    before: Sample
    after: Sample


@dataclass(frozen=True)
class ScoreChange:
    """A score of both runs; of a share of right answers the test and the answers that changed.

    A score over several answers at once (`maj@K`, `pass@K`) has no difference by answers.
    """

    before: ScoreRow
    after: ScoreRow
    difference: Comparison | None = None
    changed: Sequence[ChangedAnswer] = ()


def settings_apart(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, str, str]]:
    """What two runs were told differently: the name, and both values; `-` where one is not set."""
    for name in ("paper", "scale", "arm", "seed", "start_model"):
        if before[name] != after[name]:
            yield name, str(before[name]), str(after[name])
    old, new = before["config"], after["config"]
    for name in sorted(old.keys() | new.keys()):
        values = [as_text(one[name]["value"]) if name in one else "-" for one in (old, new)]
        if values[0] != values[1]:
            yield name, values[0], values[1]


def ends_apart(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, float, float]]:
    """Where the curves end that both runs logged and that end elsewhere."""
    for name in sorted(before["curves"].keys() & after["curves"].keys()):
        old, new = (run["curves"][name] for run in (before, after))
        if old and new and old[-1][1] != new[-1][1]:
            yield name, old[-1][1], new[-1][1]


def scores_apart(before: RunRecord, after: RunRecord) -> Iterator[ScoreChange]:
    """The scores that both runs have, paired by problem where both answered the same ones.

    Raises:
        MissingFile, DamagedFile: samples that are not there, or not what was written.
    """
    for old in before["scores"]:
        for new in after["scores"]:
            if key_of(old) != key_of(new):
                continue
            if not is_share(old["metric"]):
                yield ScoreChange(old, new)
            else:
                samples = [read_samples(samples_file(row["digest"])) for row in (old, new)]
                yield ScoreChange(old, new, compare_scores(*samples), list(changed(*samples)))


def is_share(metric: str) -> bool:
    """Whether a metric is the share of right answers."""
    return metric == "top1" or metric.startswith("avg@")


def key_of(row: ScoreRow) -> tuple[str, str, str]:
    """What makes two scores comparable."""
    return row["benchmark"], row["mode"], row["metric"]


def changed(before: Sequence[Sample], after: Sequence[Sample]) -> Iterator[ChangedAnswer]:
    """The answers to the same problem of which one alone is right."""
    others = {(sample.id, sample.sample): sample for sample in after}
    for sample in before:
        other = others.get((sample.id, sample.sample))
        if other is not None and (sample.correct is True) != (other.correct is True):
            yield ChangedAnswer(sample.id, other.correct is True, sample, other)
