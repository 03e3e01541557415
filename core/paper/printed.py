"""Printed numbers of papers as data, with their system, benchmark, metric, unit and table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TypeAlias

from eval.names import check_name

Number: TypeAlias = "float | Marked | None"
Row: TypeAlias = Sequence[Number]
PERCENT = "%"


@dataclass(frozen=True)
class Marked:
    """A printed number whose metric differs from that of its column."""

    value: float
    metric: str


def marked(metric: str, value: float) -> Marked:
    """Return a cell whose metric, such as `maj@32`, differs from that of its column."""
    return Marked(value, metric)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column with its own metric or unit, or with a header other than a benchmark's name.

    `group` is what the table prints above this column and its neighbours; `unit` is printed in the
    header and empty for a number without one.
    """

    benchmark: str
    title: str = ""
    group: str = ""
    metric: str | None = None
    unit: str | None = None

    def usual(self, metric: str) -> str:
        """Return the metric of the column; without one, that of its table."""
        return metric if self.metric is None else self.metric


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A printed number, with its system, benchmark, metric and place of printing.

    `block` and `source` name parts of the table, which its `Layout` gives titles; block `text` is
    outside any table. `column` and `group` are the headers, if they are not the benchmark's name.
    `usual` is the metric of the column; a number with another metric is marked.
    """

    system: str
    size: str | None
    block: str
    source: str
    benchmark: str
    metric: str
    value: float
    passage: str
    unit: str = PERCENT
    column: str = ""
    group: str = ""
    usual: str = "top1"
    place: int = field(default=0, compare=False)  # of its column in the table

    def cell(self) -> dict[str, object]:
        """Return the fields that a record holds: those unlike their defaults, without `place`."""
        defaults = {column.name: column.default for column in fields(self)} | {"place": self.place}
        values = asdict(self).items()
        return {name: value for name, value in values if value != defaults[name]}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Caption, titles and notes of a table: of a passage, or of our runs at the scale `of`.

    `blocks` and `sources` are the titles of the table's parts in their order. Within a block the
    best number of a column is bold if its source is one of `ranked`.
    """

    of: str
    name: str
    caption: str
    blocks: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    ranked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("layout", self.name)


def printed(
    passage: str,
    columns: Sequence[str | Column],
    metric: str,
    rows: Mapping[str, Row] | Mapping[tuple[str, str], Row],
    *,
    unit: str = PERCENT,
    block: str = "",
    source: str = "",
) -> tuple[Reported, ...]:
    """Return the numbers of one printed block, row by row; None is a cell left empty.

    A column is a benchmark's name or a `Column`. The key of a row is the system's name, or the pair
    of its name and size. Blocks of the same passage are one table.

    Raises:
        ValueError: a row has another number of cells than there are columns.
    """
    heads = [Column(benchmark=head) if isinstance(head, str) else head for head in columns]
    return tuple(
        Reported(
            system=system,
            size=size,
            block=block,
            source=source,
            benchmark=head.benchmark,
            metric=cell.metric if isinstance(cell, Marked) else head.usual(metric),
            value=cell.value if isinstance(cell, Marked) else cell,
            passage=passage,
            unit=unit if head.unit is None else head.unit,
            column=head.title,
            group=head.group,
            usual=head.usual(metric),
            place=place,
        )
        for system, size, cells in named_rows(passage, rows, len(heads))
        for place, (head, cell) in enumerate(zip(heads, cells, strict=True))
        if cell is not None
    )


def named_rows(
    passage: str, rows: Mapping[str, Row] | Mapping[tuple[str, str], Row], width: int
) -> Iterator[tuple[str, str | None, Row]]:
    """Yield the system, its size if the key has one, and the cells of each row.

    Raises:
        ValueError: a row has another number of cells than `width`.
    """
    for key, cells in rows.items():
        system, size = (key, None) if isinstance(key, str) else key
        if len(cells) != width:
            raise ValueError(f"{passage}: {system} has {len(cells)} cells, not {width}")
        yield system, size, cells
