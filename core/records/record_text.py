"""The JSON text of records: a line for each field, without repeated numbers and sources."""

import json
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import TypeAlias, TypedDict, cast

from core.records.schema import KINDS, Record, SettingValue
from core.settings.canonical import line_of
from eval.json_lines import JsonFields

Curves: TypeAlias = Mapping[str, list[list[float]]]
Config: TypeAlias = Mapping[str, SettingValue]
Scores: TypeAlias = list[JsonFields]
CURVES, CONFIG, SCORES, START = "curves", "config", "scores", "start_scores"  # fields of a run
BENCHMARK = "benchmark"  # a stored row of scores without it is only what differs from the start's

# The values of a curve: a number stands for a constant one, a name for one equal to that curve.
CurveValues: TypeAlias = list[float] | float | str


class CurveTable(TypedDict):
    """The curves that have the same steps, with their values by the parts of their names."""

    steps: list[float]
    values: dict[str, CurveValues | dict[str, CurveValues]]


class SettingTable(TypedDict):
    """The settings that have the same source, with their values by name."""

    source: str
    values: dict[str, object]


def record_text(content: Record) -> str:
    """Return a record as JSON text with one line for each field."""
    tables = {n: write(content) for n, write in WRITERS.items() if has_tables(content, n)}
    fields = [f"{json.dumps(k)}: {line_of(v)}" for k, v in sorted((content | tables).items())]
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def parse_record(text: str) -> object:
    """Return the value that a JSON text has, with its tables as lists of points, settings and rows.

    Raises:
        ValueError: the text is no JSON, or a table of its curves, settings or scores is incomplete.
    """
    content: object = json.loads(text)
    if not isinstance(content, dict):
        return content
    record = cast(Record, content)
    for name, read in READERS.items():
        if has_tables(record, name) and isinstance(record[name], list):
            try:
                record[name] = read(record)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise ValueError(f"the tables of its {name} are incomplete: {error!r}") from None
    return record


def has_tables(record: Record, name: str) -> bool:
    """Return whether a field is stored as tables; other rooms and distributions have their own."""
    return record.get("kind") in KINDS and name in record


def curve_tables(curves: Curves) -> list[CurveTable]:
    """Return curves as tables, one for each list of steps."""
    columns: dict[tuple[float, ...], dict[str, CurveValues]] = {}
    for name, curve in sorted(curves.items()):
        steps, values = tuple(step for step, _ in curve), [value for _, value in curve]
        others = columns.setdefault(steps, {})
        others[name] = shortened(values, others)
    return [{"steps": [*steps], "values": by_part(values)} for steps, values in columns.items()]


def shortened(values: list[float], others: Mapping[str, CurveValues]) -> CurveValues:
    """Return the number of a constant curve, the name of an equal one among others, or values."""
    if values and values.count(values[0]) == len(values):
        return values[0]
    return next((name for name, other in others.items() if other == values), values)


def by_part(values: Mapping[str, CurveValues]) -> dict[str, CurveValues | dict[str, CurveValues]]:
    """Return values with names `part/rest` in a mapping of their own, under `part/`."""
    parts: dict[str, CurveValues | dict[str, CurveValues]] = {}
    for name, value in values.items():
        part, slash, rest = name.partition("/")
        under = cast(dict[str, CurveValues], parts.setdefault(part + slash, {}) if slash else parts)
        under[rest if slash else part] = value
    return parts


def read_curves(tables: list[CurveTable]) -> Curves:
    """Return the curves of tables as [step, value] pairs, sorted by name.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the tables are not of `curve_tables`.
    """
    curves: dict[str, list[list[float]]] = {}
    for table in tables:
        columns: dict[str, CurveValues] = {}
        for name, stored in table["values"].items():
            under = stored if isinstance(stored, dict) else {"": stored}
            columns |= {name + rest: values for rest, values in under.items()}
        for name, stored in columns.items():
            values = columns[stored] if isinstance(stored, str) else stored
            column = cast(
                list[float], values if isinstance(values, list) else [values] * len(table["steps"])
            )
            curves[name] = [list(point) for point in zip(table["steps"], column, strict=True)]
    return dict(sorted(curves.items()))


def changed_rows(start: Scores, rows: Scores) -> Scores:
    """Return each row of scores without the fields that are equal in its row of the start.

    A row stays whole where that of the start is absent, of another benchmark or has more fields.
    """
    return [changed_row(old, row) for old, row in zip_longest(start[: len(rows)], rows)]


def changed_row(start: JsonFields | None, row: JsonFields) -> JsonFields:
    """Return the fields of a row that differ from those of the start; see `changed_rows`."""
    if start is None or not start.keys() <= row.keys() or start[BENCHMARK] != row[BENCHMARK]:
        return row
    return {
        name: value
        for name, value in row.items()
        if name not in start or line_of(start[name]) != line_of(value)
    }


def whole_rows(start: Scores, rows: Scores) -> Scores:
    """Return rows of scores with the fields that `changed_rows` left out.

    Raises:
        LookupError, TypeError: the rows are not of `changed_rows`, or the start lacks one.
    """
    return [row if BENCHMARK in row else {**start[at], **row} for at, row in enumerate(rows)]


def setting_tables(config: Config) -> list[SettingTable]:
    """Return settings as tables, one for each source."""
    tables: dict[str, SettingTable] = {}
    for name, setting in sorted(config.items()):
        empty: SettingTable = {"source": setting["source"], "values": {}}
        tables.setdefault(setting["source"], empty)["values"][name] = setting["value"]
    return list(tables.values())


def read_settings(tables: list[SettingTable]) -> Config:
    """Return the settings of tables, sorted by name.

    Raises:
        LookupError, TypeError, AttributeError: the tables are not of `setting_tables`.
    """
    settings: dict[str, SettingValue] = {
        name: {"source": table["source"], "value": value}
        for table in tables
        for name, value in table["values"].items()
    }
    return dict(sorted(settings.items()))


WRITERS: Mapping[str, Callable[[Record], object]] = {
    CURVES: lambda record: curve_tables(record[CURVES]),
    CONFIG: lambda record: setting_tables(record[CONFIG]),
    SCORES: lambda record: changed_rows(record.get(START, []), record[SCORES]),
}
READERS: Mapping[str, Callable[[Record], object]] = {
    CURVES: lambda record: read_curves(record[CURVES]),
    CONFIG: lambda record: read_settings(record[CONFIG]),
    SCORES: lambda record: whole_rows(record.get(START, []), record[SCORES]),
}
