"""The JSON text of records: a line for each field, without repeated numbers and sources."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypedDict, cast

from core.records.schema import KINDS, Record, SettingValue
from core.settings.canonical import line_of

Curves: TypeAlias = Mapping[str, list[list[float]]]
Config: TypeAlias = Mapping[str, SettingValue]
CURVES, CONFIG = "curves", "config"  # fields of a run


class CurveTable(TypedDict):
    """The curves that have the same steps, with their values by name.

    A number stands for a constant curve, and a name for a curve with the values of another one.
    """

    steps: list[float]
    values: dict[str, list[float] | float | str]


class SettingTable(TypedDict):
    """The settings that have the same source, with their values by name."""

    source: str
    values: dict[str, object]


def record_text(content: Record) -> str:
    """Return a record as JSON text with one line for each field."""
    tables = {n: write(content[n]) for n, write in WRITERS.items() if has_tables(content, n)}
    fields = [f"{json.dumps(k)}: {line_of(v)}" for k, v in sorted((content | tables).items())]
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def parse_record(text: str) -> object:
    """Return the value that a JSON text has, with curves as lists of points and settings by name.

    Raises:
        ValueError: the text is no JSON, or a table of its curves or settings is incomplete.
    """
    content: object = json.loads(text)
    if not isinstance(content, dict):
        return content
    record = cast(Record, content)
    for name, read in READERS.items():
        if has_tables(record, name) and isinstance(record[name], list):
            try:
                record[name] = read(record[name])
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise ValueError(f"the tables of its {name} are incomplete: {error!r}") from None
    return record


def has_tables(record: Record, name: str) -> bool:
    """Return whether a field is stored as tables; other rooms and distributions have their own."""
    return record.get("kind") in KINDS and name in record


def curve_tables(curves: Curves) -> list[CurveTable]:
    """Return curves as tables, one for each list of steps."""
    tables: dict[tuple[float, ...], CurveTable] = {}
    for name, curve in sorted(curves.items()):
        steps, values = [step for step, _ in curve], [value for _, value in curve]
        table = tables.setdefault(tuple(steps), {"steps": steps, "values": {}})
        table["values"][name] = shortened(values, table)
    return list(tables.values())


def shortened(values: list[float], table: CurveTable) -> list[float] | float | str:
    """Return the number of a constant curve, the name of an equal curve of a table, or values."""
    if values and values.count(values[0]) == len(values):
        return values[0]
    return next((name for name, other in table["values"].items() if other == values), values)


def read_curves(tables: list[CurveTable]) -> Curves:
    """Return the curves of tables as [step, value] pairs, sorted by name.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the tables are not of `curve_tables`.
    """
    curves: dict[str, list[list[float]]] = {}
    for table in tables:
        steps, columns = table["steps"], table["values"]
        for name, stored in columns.items():
            values = columns[stored] if isinstance(stored, str) else stored
            column = cast(
                list[float], values if isinstance(values, list) else [values] * len(steps)
            )
            curves[name] = [list(point) for point in zip(steps, column, strict=True)]
    return dict(sorted(curves.items()))


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


# Any: what JSON holds
WRITERS: Mapping[str, Callable[[Any], object]] = {CURVES: curve_tables, CONFIG: setting_tables}
READERS: Mapping[str, Callable[[Any], object]] = {CURVES: read_curves, CONFIG: read_settings}
