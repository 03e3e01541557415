"""The parts of `repro eval` without a model: statistical power, and test questions in a file."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.output import print_columns, print_json, print_text

if TYPE_CHECKING:
    from eval.sets.contamination import Match
    from eval.stats.power import Plan

NOTE = """\
paired, unpaired: the smallest true difference of two systems, in points, seen with 80 % power
says reproduced: the chance of it when the true score is the printed one"""
REWORDED_NOTE = """\
same, part, near: word for word; similar: in other words; renumbered: so, and with other numbers;
numbers: in a text with the question's rare numbers in its order, as a translation has them.
Measured on GSM8K: at least 98 % found of questions with typos, other names, numbers or order, a
sentence more or half of them, but 33 % of translations; 0.2 % of clean rows flagged. Questions of
less than 12 words are looked for word for word alone."""


def show_power(
    names: Sequence[str],
    *,
    samples: int,
    seeds: int,
    rate: float,
    seed_spread: float,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the statistical power of a planned evaluation of each benchmark."""
    from eval.sets.benchmarks import find_benchmark
    from eval.stats.power import plan

    plans = [
        plan(
            find_benchmark(name),
            samples=samples,
            seeds=seeds,
            rate=rate,
            seed_spread=seed_spread,
            limit=limit,
        )
        for name in names
    ]
    if as_json:
        return print_json([asdict(planned) for planned in plans])
    head = (
        "benchmark", "n", "samples", "seeds", "at", "95 % interval", "paired", "unpaired",
        "margin", "says reproduced",
    )  # fmt: skip
    print_columns(head, map(power_row, plans))
    return print_text(NOTE)


def power_row(plan: "Plan") -> tuple[object, ...]:
    """Return the cells of a plan."""
    never = f"never: +- {plan.gate:.2f}"
    return (
        plan.benchmark,
        plan.n,
        plan.samples,
        plan.seeds,
        f"{plan.rate:g} %",
        f"+- {plan.half_width:.2f}",
        f"{plan.paired:.2f}",
        f"{plan.unpaired:.2f}",
        f"{plan.margin:g}",
        f"{plan.gate_power:.0f} %" if plan.gate_power else never,
    )


def show_contamination(
    path: Path, names: Sequence[str], data: Path | None, *, as_json: bool
) -> int:
    """Print the test questions that a training file contains; return 1 if there are any, else 0."""
    from eval.errors import DamagedFile
    from eval.sets.benchmarks import find_benchmark
    from eval.sets.contamination import find_questions, read_texts

    benchmarks = list(map(find_benchmark, names))
    rows = read_texts(path)
    if not rows:
        raise DamagedFile(f"{path} holds no rows: nothing to look for test questions in")
    matches = [find_questions(rows, benchmark.load(data)) for benchmark in benchmarks]
    counts = [
        {
            "benchmark": benchmark.name,
            "questions": benchmark.n,
            "rows": len(rows),
            **count_kinds(pairs),
        }
        for benchmark, pairs in zip(benchmarks, matches, strict=True)
    ]
    if as_json:
        rows_of_pairs = ([asdict(pair) for pair in pairs] for pairs in matches)
        print_json(
            [{**row, "pairs": pairs} for row, pairs in zip(counts, rows_of_pairs, strict=True)]
        )
    else:
        print_columns(tuple(counts[0]), [tuple(row.values()) for row in counts])
        print_text(REWORDED_NOTE)
        for pairs in matches:
            print_questions(pairs)
    return int(any(matches))


def count_kinds(matches: "Sequence[Match]") -> dict[str, int]:
    """Return the number of distinct questions that were found, in all and of each kind."""
    from eval.sets.contamination import KINDS

    of_kind = {kind: distinct(m for m in matches if m.kind == kind) for kind in KINDS}
    return {"found": distinct(matches), **of_kind}


def print_questions(matches: "Sequence[Match]") -> None:
    """Print a line for each question: its strictest kind, first row and number of others."""
    from eval.sets.contamination import KINDS

    rows: dict[str, list[Match]] = {}
    for pair in matches:
        rows.setdefault(pair.id, []).append(pair)
    strictest = [
        min(row_matches, key=lambda pair: KINDS.index(pair.kind)) for row_matches in rows.values()
    ]
    for pair in sorted(strictest, key=lambda pair: KINDS.index(pair.kind)):
        suffix = f" and {len(rows[pair.id]) - 1} more" if len(rows[pair.id]) > 1 else ""
        start = " ".join(pair.question.split())[:80]
        print_text(f"{pair.kind}  {pair.id}  row {pair.row}{suffix}  {start}")


def distinct(pairs: "Iterable[Match]") -> int:
    """Count the distinct questions of the matches."""
    return len({pair.id for pair in pairs})
