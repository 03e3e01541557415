"""A paper's printed tables, drawn from its numbers; a `Layout` says what a plain grid would not."""

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
    """Where the paper prints numbers, in its order; with `text` also where it is in no table."""
    kept = [number for number in paper.reported if text or number.block != TEXT]
    return list(dict.fromkeys(number.passage for number in kept))


def printed_table(paper: Paper, passage: str, runs: Sequence[RunRecord] = ()) -> Table:
    """The numbers of one passage as the paper lays them out, our `runs` at paper scale below.

    Raises:
        BadValue: a block or a source that the layout does not name, two numbers for one place, or
            no number at all.
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
    for key, title, some in parts(numbers, "block", layout.blocks, passage):
        own = our_sections(paper, arms, measured, MODES[key]) if runs and key in MODES else ()
        ours = ours or bool(own)
        block = Block(title, (*sections(some, columns, layout, sized=sized), *own))
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
    """The columns that the numbers stand in, in the order in which they are printed."""
    found: dict[Place, int] = {}
    for number in numbers:
        found.setdefault(place_of(number), number.place)
    return tuple(sorted(found, key=found.__getitem__))


def place_of(number: Reported) -> Place:
    """The column of a number."""
    return number.group, number.column, number.benchmark, number.unit, number.usual


def parts(
    numbers: Iterable[Reported], part: str, titles: Mapping[str, str], passage: str
) -> Iterator[tuple[str, str, list[Reported]]]:
    """Key, title and numbers of every `block` or `source` of a table, in the layout's order.

    Raises:
        BadValue: a number is of none that the layout names.
    """
    found: dict[str, list[Reported]] = {}
    for number in numbers:
        found.setdefault(number.block if part == "block" else number.source, []).append(number)
    for key in list(titles or found):
        if key in found:
            yield key, titles.get(key, "" if key == TEXT else key), found.pop(key)
    for key, (number, *_) in found.items():
        raise BadValue(
            f"{passage}: {number.system} has the {part} {key!r}, expected one of "
            f"{', '.join(titles)}"
        )


def sections(
    numbers: Sequence[Reported], columns: Sequence[Place], layout: Layout, *, sized: bool
) -> Iterator[Section]:
    """The sections of a block, one for each source."""
    for source, title, some in parts(numbers, "source", layout.sources, layout.of):
        rows: dict[tuple[str, ...], dict[Place, Cell]] = {}
        for number in some:
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
    """The headers; they say the unit where not all numbers are percent."""
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
    """How many decimals a number is written with in the paper's module: 3000 none, 28.81 two."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def plain_caption(paper: Paper, passage: str, numbers: Sequence[Reported]) -> str:
    """The paper, the passage, and the metric and the unit that all numbers share."""
    metrics = {number.usual for number in numbers}
    units = {number.unit for number in numbers}
    words = [*(metrics if len(metrics) == 1 else ()), *(["in %"] if units == {PERCENT} else ())]
    shared = " ".join(filter(None, words))
    return f"{paper.slug}, {passage}{shared and f': {shared}'}"


def meaning(metric: str) -> str:
    """Say what the mark of a number means."""
    name, _, samples = metric.partition("@")
    said = {
        "maj": f"majority vote over {samples} samples, not one answer",
        "avg": f"mean over {samples} samples, not one answer",
        "pass": f"any of {samples} samples right, not one answer",
    }
    return f"{said.get(name, 'not the metric of the rest of its column')}; not ranked."
