"""The data of a table: cells that carry their own uncertainty, in rows, sections and blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isfinite

from eval.errors import BadValue

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Versus:
    """A cell against the baseline's in its column: the difference in points with its test.

    `p` is adjusted for all comparisons of the table. `sign` is `+` or `-` where the difference is
    significant at 5 %, else empty.
    """

    delta: float
    low: float
    high: float
    p: float
    n: int
    method: str

    @property
    def sign(self) -> str:
        """Which way a significant difference goes."""
        return "" if self.p >= SIGNIFICANT else "+" if self.delta > 0 else "-"


@dataclass(frozen=True)
class Cell:
    """One number of a column; ours carries n and a 95 % interval, a reported one its passage.

    `mark` names a metric that the column does not rank ("maj@32"); `source` says where the number
    is from, and `path` leads to what it was computed from.

    Raises:
        BadValue: the number is not finite, or lacks n or interval without being reported.

    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reported: bool = False
    bold: bool = False
    mark: str | None = None
    seeds: int = 1
    source: str | None = None
    versus: Versus | None = None
    path: str = ""

    def __post_init__(self) -> None:
        number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not number or not isfinite(self.value):
            raise BadValue(f"cell {self.value!r}: expected a finite number")
        if self.low is None or self.high is None or self.n is None:
            if not self.reported:
                raise BadValue(
                    f"cell {self.value}: n={self.n}, interval=[{self.low}, {self.high}]: a number "
                    "of ours needs both; a printed one needs reported=True"
                )
        elif not (self.low <= self.value <= self.high and self.n >= 1 and self.seeds >= 1):
            raise BadValue(
                f"cell {self.value}: interval [{self.low}, {self.high}], n={self.n}, "
                f"seeds={self.seeds}: expected low <= value <= high, n >= 1 and seeds >= 1"
            )

    @property
    def measured(self) -> bool:
        """Whether the cell has an interval to print."""
        return self.low is not None and self.high is not None and self.n is not None


@dataclass(frozen=True)
class Column:
    """A header, and how the numbers below it are printed and measured.

    `group` stands above this column and its neighbours of the same group; `unit` is said in the
    header, empty where the caption says it or there is none; `places` are decimals; `metric` is
    that of unmarked cells.
    """

    title: str
    group: str = ""
    unit: str = ""
    places: int = 1
    metric: str = ""

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def one_line_heading(self) -> str:
        """The heading after that of its group, where a header has one line only."""
        return f"{self.group}: {self.heading}" if self.group else self.heading


@dataclass(frozen=True)
class Row:
    """The labels that name a system and its cells, None where there is no number.

    `path` leads to its record.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell | None, ...]
    path: str = ""


@dataclass(frozen=True)
class Section:
    """Rows of one kind; only ranked sections compete for the best cell of a column."""

    title: str
    rows: tuple[Row, ...]
    ranked: bool = False


@dataclass(frozen=True)
class Block:
    """Sections that are compared with each other."""

    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A whole table at one scale; `marks` explains each mark.

    Raises:
        BadValue: a row is longer or shorter than the header, or a mark is not explained.

    """

    name: str
    caption: str
    scale: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    baseline: str = ""  # the system that cells are compared with

    def __post_init__(self) -> None:
        for block, section, row in self.rows():
            place = f"{self.name}, {block.title}, {section.title}, {row.labels}"
            if len(row.labels) != len(self.heads) or len(row.cells) != len(self.columns):
                raise BadValue(
                    f"{place}: {len(row.labels)} labels and {len(row.cells)} cells for "
                    f"{len(self.heads)} and {len(self.columns)} columns"
                )
            for mark in {cell.mark for cell in row.cells if cell and cell.mark}:
                if mark not in self.marks:
                    raise BadValue(f"{place}: the mark {mark!r} is not explained in `marks`")

    def comparisons(self) -> Iterator[tuple[str, str, Versus]]:
        """System, column and comparison of every cell that has one."""
        for _, _, row in self.rows():
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell is not None and cell.versus is not None:
                    yield row.labels[0], column.title, cell.versus

    def groups(self) -> list[tuple[str, int]]:
        """What stands above the columns and over how many of them; nothing if no column has it."""
        runs = [(name, len(list(run))) for name, run in groupby(self.columns, lambda c: c.group)]
        return runs if any(name for name, _ in runs) else []

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first and the last column below each group, counted from 1 with the labels."""
        last = len(self.heads)
        for name, count in self.groups():
            first, last = last + 1, last + count
            if name:
                yield first, last

    def rows(self) -> Iterator[tuple[Block, Section, Row]]:
        """Every row with the block and the section it stands in."""
        for block in self.blocks:
            for section in block.sections:
                for row in section.rows:
                    yield block, section, row


def rankable(section: Section, cell: Cell | None) -> bool:
    """Whether a cell may be the best of its column: in a ranked section, and not marked."""
    return section.ranked and cell is not None and cell.mark is None


def with_best_bold(block: Block) -> Block:
    """Make the highest rankable cell of every column bold, equal ones all."""
    best: dict[int, float] = {}
    for section in block.sections:
        for row in section.rows:
            for column, cell in enumerate(row.cells):
                if cell is not None and rankable(section, cell):
                    best[column] = max(cell.value, best.get(column, cell.value))

    def emphasised(section: Section, row: Row) -> Row:
        return replace(
            row,
            cells=tuple(
                cell and replace(cell, bold=rankable(section, cell) and cell.value == best[column])
                for column, cell in enumerate(row.cells)
            ),
        )

    return replace(
        block,
        sections=tuple(
            replace(section, rows=tuple(emphasised(section, row) for row in section.rows))
            for section in block.sections
        ),
    )


def told_apart(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The same columns; where several have one heading it stands above them, and their metrics."""
    named = [column.one_line_heading for column in columns]
    return tuple(
        replace(
            column,
            title=column.metric,
            group=f"{column.group}: {column.title}" if column.group else column.title,
        )
        if named.count(name) > 1
        else column
        for name, column in zip(named, columns, strict=True)
    )
