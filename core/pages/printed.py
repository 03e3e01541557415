"""A paper's printed tables, made of its numbers and the layout that the paper gives them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from core.pages.runs import (
    HEADS,
    SEEDS_NOTE,
    by_arm,
    layout_of,
    limited_mark,
    our_sections,
    title_of,
)
from core.paper import Layout, Paper, Reported
from core.paper.printed import PERCENT
from core.records.schema import RunRecord
from eval.errors import BadValue
from eval.tables.table import (
    Block,
    Cell,
    Column,
    Row,
    Section,
    Table,
    disambiguate_columns,
    with_best_bold,
)

TEXT = "text"  # the block of a number outside any table
MODES = {"": "cot", "cot": "cot", "tool": "tir"}  # of a block: how its models were asked
Place: TypeAlias = tuple[str, str, str, str, str]  # group, column, benchmark, unit and usual metric


def passages(paper: Paper, *, text: bool = True) -> list[str]:
    """Return the passages in which a paper prints numbers; without `text`, only those of tables."""
    numbers = [number for number in paper.reported if text or number.block != TEXT]
    return list(dict.fromkeys(number.passage for number in numbers))


def printed_table(paper: Paper, passage: str, runs: Sequence[RunRecord] = ()) -> Table:
    """Return the table of one passage as the paper lays it out, with our runs at paper scale below.

    Raises:
        BadValue: the layout lacks a block or source, two numbers have one place, or the passage has
            no number.
    """
    numbers = [number for number in paper.reported if number.passage == passage]
    if not numbers:
        raise BadValue(f"{paper.slug} prints no number in {passage!r}")
    layout = layout_of(paper, passage, plain_caption(paper, passage, numbers))
    columns = columns_of(numbers)
    arms = by_arm(paper, runs)
    sized = any(number.size for number in numbers) or bool(runs)
    measured = [(benchmark, usual) for _, _, benchmark, _, usual in columns]
    blocks: list[Block] = []
    ours = False
    for key, title, part_numbers in parts(numbers, "block", layout.blocks, passage):
        own_sections = (
            our_sections(paper, arms, measured, MODES[key]) if runs and key in MODES else ()
        )
        ours = ours or bool(own_sections)
        block = Block(title, (*sections(part_numbers, columns, layout, sized=sized), *own_sections))
        blocks.append(with_best_bold(block) if layout.ranked else block)
    marks = {number.metric for number in numbers if number.metric != number.usual}
    return Table(
        name=layout.name,
        caption=f"{layout.caption} (paper scale, {'reported and ours' if ours else 'as reported'})",
        scale="paper",
        heads=HEADS if sized else HEADS[:1],
        columns=headers(columns, numbers),
        blocks=tuple(blocks),
        marks={mark: meaning(mark) for mark in sorted(marks)}
        | (limited_mark(runs) if ours else {}),
        notes=(*layout.notes, *((SEEDS_NOTE,) if ours else ())),
    )


def columns_of(numbers: Iterable[Reported]) -> tuple[Place, ...]:
    """Return the columns of these numbers, in the order in which they are printed."""
    columns: dict[Place, int] = {}
    for number in numbers:
        columns.setdefault(place_of(number), number.place)
    return tuple(sorted(columns, key=columns.__getitem__))


def place_of(number: Reported) -> Place:
    """Return the column of a number."""
    return number.group, number.column, number.benchmark, number.unit, number.usual


def parts(
    numbers: Iterable[Reported], part: str, titles: Mapping[str, str], passage: str
) -> Iterator[tuple[str, str, list[Reported]]]:
    """Yield key, title and numbers of each `block` or `source` of a table, in the layout's order.

    Raises:
        BadValue: a number belongs to a block or source that the layout does not name.
    """
    by_key: dict[str, list[Reported]] = {}
    for number in numbers:
        by_key.setdefault(number.block if part == "block" else number.source, []).append(number)
    for key in list(titles or by_key):
        if key in by_key:
            yield key, titles.get(key, "" if key == TEXT else key), by_key.pop(key)
    for key, (number, *_) in by_key.items():
        raise BadValue(
            f"{passage}: {number.system} has the {part} {key!r}, expected one of "
            f"{', '.join(titles)}"
        )


def sections(
    numbers: Sequence[Reported], columns: Sequence[Place], layout: Layout, *, sized: bool
) -> Iterator[Section]:
    """Yield the sections of a block, one for each source.

    Raises:
        BadValue: a row has two numbers for one column.
    """
    for source, title, source_numbers in parts(numbers, "source", layout.sources, layout.of):
        rows: dict[tuple[str, ...], dict[Place, Cell]] = {}
        for number in source_numbers:
            labels = (number.system, number.size or "-") if sized else (number.system,)
            row, place = rows.setdefault(labels, {}), place_of(number)
            if place in row:
                raise BadValue(
                    f"{layout.of}: {number.system} has two numbers for {number.benchmark}"
                )
            mark = None if number.metric == number.usual else number.metric
            row[place] = Cell(number.value, reported=True, mark=mark, source=number.passage)
        yield Section(
            title,
            tuple(Row(labels, tuple(map(row.get, columns))) for labels, row in rows.items()),
            ranked=source in layout.ranked,
        )


def headers(columns: Sequence[Place], numbers: Sequence[Reported]) -> tuple[Column, ...]:
    """Return the headers of the columns; they have units if not all numbers are percentages."""
    percent = all(number.unit == PERCENT for number in numbers)
    return disambiguate_columns(
        [
            Column(
                place[1] or title_of(place[2]),
                group=place[0],
                unit="" if percent else place[3],
                places=max(decimals(n.value) for n in numbers if place_of(n) == place),
                metric=place[4],
            )
            for place in columns
        ]
    )


def decimals(value: float) -> int:
    """Return the number of decimals that a number is written with: 3000 has none, 28.81 two."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def plain_caption(paper: Paper, passage: str, numbers: Sequence[Reported]) -> str:
    """Return a caption: paper, passage, and the metric and unit if all numbers share them."""
    metrics = {number.usual for number in numbers}
    units = {number.unit for number in numbers}
    labels = [*(metrics if len(metrics) == 1 else ()), *(["in %"] if units == {PERCENT} else ())]
    shared = " ".join(filter(None, labels))
    return f"{paper.slug}, {passage}{shared and f': {shared}'}"


def meaning(metric: str) -> str:
    """Say what the mark of a number means."""
    name, _, samples = metric.partition("@")
    meanings = {
        "maj": f"majority vote over {samples} samples, not one answer",
        "avg": f"mean over {samples} samples, not one answer",
        "pass": f"any of {samples} samples right, not one answer",
    }
    return f"{meanings.get(name, 'not the metric of the rest of its column')}; not ranked."
