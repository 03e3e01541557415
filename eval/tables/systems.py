"""Tables of several systems from their graded samples, each compared with the first system."""

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
    """Build a table with a row for each system and a column for each benchmark.

    With one sample a problem, the score is Top1 and the test McNemar's; with K, the score is Avg@K
    and the test a sign-flip test. p values are adjusted by Holm's method over all comparisons.
    Systems with different problems are compared unpaired.

    Args:
        systems: The samples of each system and benchmark, `systems[name][benchmark]`; the first
            system is the baseline.

    Raises:
        BadValue: there are fewer than two systems, or a system's samples are incomplete.
    """
    if (count := len(systems)) < 2:
        raise BadValue(f"{count} systems to compare: expected at least two files or folders")
    baseline = next(iter(systems))
    names = list(dict.fromkeys(name for samples in systems.values() for name in samples))
    metric, cells = score_cells(baseline, systems)
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


def score_cells(
    baseline: str, systems: Mapping[str, Mapping[str, Samples]]
) -> tuple[str, dict[tuple[str, str], Cell]]:
    """Return the first score's metric, and the cell of each system and benchmark."""
    scores = {
        (system, name): mean_score(samples, name)
        for system, suites in systems.items()
        for name, samples in suites.items()
    }
    versus = compare_with(baseline, systems)
    metric = next(iter(scores.values())).metric
    return metric, {key: to_cell(s, metric, versus.get(key)) for key, s in scores.items()}


def mean_score(samples: Samples, name: str) -> Score:
    """Return the Top1 of single samples, or the Avg@K of K samples a problem."""
    k = 1 + max(sample.sample for sample in samples)
    return score(samples, find_benchmark(name), ("top1" if k == 1 else f"avg@{k}",))[0]


def compare_with(
    baseline: str, systems: Mapping[str, Mapping[str, Samples]]
) -> dict[tuple[str, str], Versus]:
    """Compare every other system with the baseline on every benchmark that both have."""
    comparisons: dict[tuple[str, str], Comparison] = {
        (system, name): compare_scores(systems[baseline][name], samples)
        for system, suites in systems.items()
        for name, samples in suites.items()
        if system != baseline and name in systems[baseline]
    }
    adjusted = holm([comparison.p for comparison in comparisons.values()])
    return {
        key: Versus(c.delta, c.low, c.high, p, c.n, method(c))
        for (key, c), p in zip(comparisons.items(), adjusted, strict=True)
    }


def method(comparison: Comparison) -> str:
    """Return the name of the test, with "(unpaired)" if problems were not paired."""
    return comparison.method if comparison.paired else f"{comparison.method} (unpaired)"


def to_cell(row: Score, metric: str, versus: Versus | None) -> Cell:
    """Build a score's cell, marked for another metric or for a part of the test set."""
    marks = [
        *([row.metric] if row.metric != metric else []),
        *([LIMITED] * row.limited),
    ]
    cell = Cell(
        row.value,
        row.low,
        row.high,
        row.n,
        mark=", ".join(marks) or None,
    )
    return replace(cell, versus=versus)


def explain(mark: str) -> str:
    """Return the explanation of a mark for the table's legend."""
    parts = [
        "scored on a part of the test set" if part == LIMITED else f"the metric is {part}"
        for part in mark.split(", ")
    ]
    return "; ".join(parts)
