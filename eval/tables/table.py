"""Data classes of tables: cells with their own uncertainty, in rows, sections and blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isfinite

from eval.errors import BadValue

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Versus:
    """The comparison of a cell with the baseline's cell in its column: the difference in points.

    `p` is adjusted for all comparisons of the table.
    """

    delta: float
    low: float
    high: float
    p: float
    n: int
    method: str

    @property
    def sign(self) -> str:
        """`+` or `-` for a difference that is significant at 5 %, else empty."""
        return "" if self.p >= SIGNIFICANT else "+" if self.delta > 0 else "-"


@dataclass(frozen=True)
class Cell:
    """A number of a table: a measured one with n and its 95 % interval, or a reported one.

    `mark` names a metric that the column does not rank ("maj@32"). `source` cites where a reported
    number was printed, and `path` links to the data that a measured number was computed from.

    Raises:
        BadValue: the number is not finite, or a measured number lacks n or its interval.
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
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not is_number or not isfinite(self.value):
            raise BadValue(f"cell {self.value!r}: expected a finite number")
        if self.low is not None and self.high is not None and self.n is not None:
            self.check_interval(self.low, self.high, self.n)
        elif not self.reported:
            raise BadValue(
                f"cell {self.value}: n={self.n}, interval=[{self.low}, {self.high}]: a measured "
                "number needs both; a printed one needs reported=True"
            )

    def check_interval(self, low: float, high: float, n: int) -> None:
        """Raise `BadValue` unless low <= value <= high, n >= 1 and seeds >= 1."""
        if not (low <= self.value <= high and n >= 1 and self.seeds >= 1):
            raise BadValue(
                f"cell {self.value}: interval [{self.low}, {self.high}], n={self.n}, "
                f"seeds={self.seeds}: expected low <= value <= high, n >= 1 and seeds >= 1"
            )

    @property
    def has_interval(self) -> bool:
        """True if the cell has an interval to print."""
        return self.low is not None and self.high is not None and self.n is not None


@dataclass(frozen=True)
class Column:
    """A column with its title and the format of its numbers.

    `group` is the heading over this column and its neighbours of the same group. `unit` is printed
    in the header; it is empty if the caption states the unit or there is none. `places` is the
    number of decimals, and `metric` that of unmarked cells.
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
        """The heading with its group, for headers of a single line."""
        return f"{self.group}: {self.heading}" if self.group else self.heading


@dataclass(frozen=True)
class Row:
    """The labels that name a system, and its cells; a cell is None if there is no number.

    `path` links to the record of the row.
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
    """A table at one scale; `marks` maps each mark of its cells to an explanation.

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
        """Yield the system, the column title and the comparison of every compared cell."""
        for _, _, row in self.rows():
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell is not None and cell.versus is not None:
                    yield row.labels[0], column.title, cell.versus

    def groups(self) -> list[tuple[str, int]]:
        """Return each column group with its number of columns; empty if no column has a group."""
        runs = [(name, len(list(run))) for name, run in groupby(self.columns, lambda c: c.group)]
        return runs if any(name for name, _ in runs) else []

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last column of each group, counted from 1 with the label columns."""
        last = len(self.heads)
        for name, count in self.groups():
            first, last = last + 1, last + count
            if name:
                yield first, last

    def rows(self) -> Iterator[tuple[Block, Section, Row]]:
        """Yield every row with its block and its section."""
        for block in self.blocks:
            for section in block.sections:
                for row in section.rows:
                    yield block, section, row


def is_rankable(section: Section, cell: Cell | None) -> bool:
    """Return whether a cell can be the best of its column: unmarked and in a ranked section."""
    return section.ranked and cell is not None and cell.mark is None


def with_best_bold(block: Block) -> Block:
    """Return the block with the best rankable cells of every column in bold, all ties included."""
    best: dict[int, float] = {}
    for section in block.sections:
        for row in section.rows:
            for column, cell in enumerate(row.cells):
                if cell is not None and is_rankable(section, cell):
                    best[column] = max(cell.value, best.get(column, cell.value))

    def emphasise(section: Section, row: Row) -> Row:
        return replace(
            row,
            cells=tuple(
                cell
                and replace(cell, bold=is_rankable(section, cell) and cell.value == best[column])
                for column, cell in enumerate(row.cells)
            ),
        )

    return replace(
        block,
        sections=tuple(
            replace(section, rows=tuple(emphasise(section, row) for row in section.rows))
            for section in block.sections
        ),
    )


def disambiguate_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns, with the metric as title where several columns share a heading.

    The shared heading then becomes the group of those columns.
    """
    headings = [column.one_line_heading for column in columns]
    return tuple(
        replace(
            column,
            title=column.metric,
            group=f"{column.group}: {column.title}" if column.group else column.title,
        )
        if headings.count(name) > 1
        else column
        for name, column in zip(headings, columns, strict=True)
    )
