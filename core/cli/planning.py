"""What `repro eval` says without a model: the power of a plan, and test questions in a file."""

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
    """Print what a planned evaluation of each benchmark can see."""
    from eval.sets.benchmarks import find_benchmark
    from eval.stats.power import plan

    found = [
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
        return print_json([asdict(one) for one in found])
    head = (
        "benchmark", "n", "samples", "seeds", "at", "95 % interval", "paired", "unpaired",
        "margin", "says reproduced",
    )  # fmt: skip
    print_columns(head, map(power_row, found))
    return print_text(NOTE)


def power_row(one: "Plan") -> tuple[object, ...]:
    """One plan as a line of the table."""
    never = f"never: +- {one.gate:.2f}"
    return (
        one.benchmark,
        one.n,
        one.samples,
        one.seeds,
        f"{one.rate:g} %",
        f"+- {one.half_width:.2f}",
        f"{one.paired:.2f}",
        f"{one.unpaired:.2f}",
        f"{one.margin:g}",
        f"{one.gate_power:.0f} %" if one.gate_power else never,
    )


def show_contamination(
    path: Path, names: Sequence[str], data: Path | None, *, as_json: bool
) -> int:
    """Print which test questions a training file holds; 1 if there are any."""
    from eval.errors import DamagedFile
    from eval.sets.benchmarks import find_benchmark
    from eval.sets.contamination import KINDS, find_questions, read_texts

    benchmarks = [find_benchmark(name) for name in names]
    rows = read_texts(path)
    if not rows:
        raise DamagedFile(f"{path} holds no rows: nothing to look for test questions in")
    pairs = {one.name: find_questions(rows, one.load(data)) for one in benchmarks}
    counts = [
        {
            "benchmark": one.name,
            "questions": one.n,
            "rows": len(rows),
            "found": distinct(pairs[one.name]),
            **{kind: distinct(p for p in pairs[one.name] if p.kind == kind) for kind in KINDS},
        }
        for one in benchmarks
    ]
    if as_json:
        print_json(
            [{**row, "pairs": [asdict(p) for p in pairs[row["benchmark"]]]} for row in counts]
        )
    else:
        print_columns(tuple(counts[0]), [tuple(row.values()) for row in counts])
        print_text(REWORDED_NOTE)
        for found in pairs.values():
            print_questions(found)
    return int(any(pairs.values()))


def print_questions(found: "Sequence[Match]") -> None:
    """One line for each question: its strictest kind, the first such row, and how many more."""
    from eval.sets.contamination import KINDS

    rows: dict[str, list[Match]] = {}
    for pair in found:
        rows.setdefault(pair.id, []).append(pair)
    strictest = [min(held, key=lambda pair: KINDS.index(pair.kind)) for held in rows.values()]
    for pair in sorted(strictest, key=lambda pair: KINDS.index(pair.kind)):
        more = f" and {len(rows[pair.id]) - 1} more" if len(rows[pair.id]) > 1 else ""
        start = " ".join(pair.question.split())[:80]
        print_text(f"{pair.kind}  {pair.id}  row {pair.row}{more}  {start}")


def distinct(pairs: "Iterable[Match]") -> int:
    """How many different questions."""
    return len({pair.id for pair in pairs})
