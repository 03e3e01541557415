"""Several systems side by side from their graded samples, each compared with the first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark
from eval.stats.comparisons import Comparison, compare_scores, holm
from eval.stats.summary import Score, score
from eval.tables.table import Block, Cell, Column, Row, Section, Table, Versus

LIMITED = "a part"
Samples = Sequence[Sample]


def systems_table(systems: Mapping[str, Mapping[str, Samples]]) -> Table:
    """A row for each system, a column for each benchmark; `systems[name][benchmark]` are samples.

    With one sample a problem the score is Top1 and the test McNemar's, with K it is Avg@K and the
    test flips signs; p is Holm's over all comparisons. Problems that differ are not paired.

    Raises:
        BadValue: there are fewer than two systems, or one's samples are incomplete.
    """
    if (count := len(systems)) < 2:
        raise BadValue(f"{count} of the systems to compare: expected at least two files or folders")
    baseline = next(iter(systems))
    names = list(dict.fromkeys(name for samples in systems.values() for name in samples))
    scores = {
        (system, name): mean_score(samples, name)
        for system, found in systems.items()
        for name, samples in found.items()
    }
    versus = compare_with(baseline, systems)
    metric = next(iter(scores.values())).metric
    cells = {key: to_cell(one, metric, versus.get(key)) for key, one in scores.items()}
    rows = tuple(
        Row((system,), tuple(cells.get((system, name)) for name in names)) for system in systems
    )
    marks = sorted({cell.mark for cell in cells.values() if cell.mark})
    return Table(
        name="samples",
        caption=f"Accuracy in % of {count} systems ({metric})",
        scale="samples",
        heads=("System",),
        columns=tuple(Column(find_benchmark(name).title, metric=metric) for name in names),
        blocks=(Block(f"Compared with {baseline}", (Section("", rows),)),),
        notes=(
            f"↑ and ↓: significantly above or below {baseline} (p < 0.05, two-sided, adjusted "
            "after Holm over all comparisons of this table).",
            "Intervals: 95 %; n: problems.",
        ),
        marks={mark: explain(mark) for mark in marks},
        baseline=baseline,
    )


def mean_score(samples: Samples, name: str) -> Score:
    """Top1 of single samples, else Avg@K."""
    k = 1 + max(sample.sample for sample in samples)
    return score(samples, find_benchmark(name), ("top1" if k == 1 else f"avg@{k}",))[0]


def compare_with(
    baseline: str, systems: Mapping[str, Mapping[str, Samples]]
) -> dict[tuple[str, str], Versus]:
    """Every other system against the baseline on every benchmark that both have."""
    found: dict[tuple[str, str], Comparison] = {
        (system, name): compare_scores(systems[baseline][name], samples)
        for system, suites in systems.items()
        for name, samples in suites.items()
        if system != baseline and name in systems[baseline]
    }
    adjusted = holm([comparison.p for comparison in found.values()])
    return {
        key: Versus(c.delta, c.low, c.high, p, c.n, method(c))
        for (key, c), p in zip(found.items(), adjusted, strict=True)
    }


def method(comparison: Comparison) -> str:
    """The name of the test, and whether problems were paired."""
    return comparison.method if comparison.paired else f"{comparison.method} (unpaired)"


def to_cell(found: Score, metric: str, versus: Versus | None) -> Cell:
    """A score as a cell; another metric, or a part of a test set, is marked."""
    marks = [*([found.metric] if found.metric != metric else []), *([LIMITED] * found.limited)]
    cell = Cell(found.value, found.low, found.high, found.n, mark=", ".join(marks) or None)
    return replace(cell, versus=versus)


def explain(mark: str) -> str:
    """What a mark stands for."""
    parts = [
        "scored on a part of the test set" if part == LIMITED else f"the metric is {part}"
        for part in mark.split(", ")
    ]
    return "; ".join(parts)
