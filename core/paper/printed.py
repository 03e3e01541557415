"""Printed numbers as data: whose, on what, how measured, in which unit, and in which table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TypeAlias

from eval.names import check_name

Number: TypeAlias = "float | Marked | None"
PERCENT = "%"


@dataclass(frozen=True)
class Marked:
    """A printed number whose metric is not its column's."""

    value: float
    metric: str


def marked(metric: str, value: float) -> Marked:
    """A cell printed with another metric than the rest of its column, e.g. `maj@32`."""
    return Marked(value, metric)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column whose metric or unit is not its table's, or whose header is not a benchmark's name.

    `group` is what the table prints above this column and its neighbours; `unit` is printed in the
    header and empty for a number without one.
    """

    benchmark: str
    title: str = ""
    group: str = ""
    metric: str | None = None
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reported:
    """One printed number: whose, on what, how measured, and where it is printed.

    `block` and `source` are the parts of the table it stands in, as the `Layout` of the table names
    them; block `text` is outside any table. `column` and `group` are its headers, if they are not
    its benchmark's name; `usual` is the metric of its column, and another one is marked.
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
        """The fields that a record holds: those that are needed, and others that say something."""
        defaults = {one.name: one.default for one in fields(self)}
        said = asdict(self).items()
        return {name: value for name, value in said if value != defaults[name] and name != "place"}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the table of a passage, or of our runs at the scale `of`, says beside its numbers.

    `blocks` and `sources` are the titles of its parts in their order; within a block the best
    number of a column is bold if its source is one of `ranked`.
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
    rows: Mapping[str, Sequence[Number]] | Mapping[tuple[str, str], Sequence[Number]],
    *,
    unit: str = PERCENT,
    block: str = "",
    source: str = "",
) -> tuple[Reported, ...]:
    """The numbers of one printed block, row by row; `None` is a cell the paper leaves empty.

    A column is a benchmark's name or a `Column`, a row's key the system's name or the pair of its
    name and its size. Blocks of the same passage are one table.

    Raises:
        ValueError: a row has another number of cells than there are columns.
    """
    heads = [Column(benchmark=one) if isinstance(one, str) else one for one in columns]
    numbers: list[Reported] = []
    for row, cells in rows.items():
        system, size = (row, None) if isinstance(row, str) else row
        if len(cells) != len(heads):
            raise ValueError(f"{passage}: {system} has {len(cells)} cells, not {len(heads)}")
        for place, (head, cell) in enumerate(zip(heads, cells, strict=True)):
            if cell is None:
                continue
            usual = metric if head.metric is None else head.metric
            number = cell if isinstance(cell, Marked) else Marked(cell, usual)
            numbers.append(
                Reported(
                    system=system,
                    size=size,
                    block=block,
                    source=source,
                    benchmark=head.benchmark,
                    metric=number.metric,
                    value=number.value,
                    passage=passage,
                    unit=unit if head.unit is None else head.unit,
                    column=head.title,
                    group=head.group,
                    usual=usual,
                    place=place,
                )
            )
    return tuple(numbers)
