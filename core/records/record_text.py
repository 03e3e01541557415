"""The JSON text of records: a line for each field, without repeated numbers and sources."""

import json
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import NotRequired, TypeAlias, TypedDict, cast

from core.records.schema import KINDS, Record, SettingValue
from core.settings.canonical import line_of
from eval.json_lines import JsonFields, distinct_fields

Curves: TypeAlias = Mapping[str, list[list[float]]]
Config: TypeAlias = Mapping[str, SettingValue]
Scores: TypeAlias = list[JsonFields]
CURVES, CONFIG, SCORES, START = "curves", "config", "scores", "start_scores"  # fields of a run
BENCHMARK = "benchmark"  # a stored row of scores without it is only what differs from the start's
METRIC = "metric"  # a stored row of the start without it is only what differs from COMMON
COMMON: JsonFields = {  # of most scores: greedy answers, a Wilson interval, all problems
    METRIC: "top1",
    "drawn": None,
    "executor_errors": 0,
    "limited": False,
    "method": "wilson",
    "mode": "cot",
    "programs": 0,
    "question_variance": None,
    "sample_variance": None,
    "samples": 1,
    "seed": 0,
    "timeouts": 0,
    "unanswered": 0,
    "undecided": 0,
}
BILLION = 10**9  # training logs are rounded to billionths

# The values of a curve: a number stands for a constant one, a name for one equal to that curve.
CurveValues: TypeAlias = list[float] | float | str
Parts: TypeAlias = dict[str, CurveValues | dict[str, CurveValues]]


class CurveTable(TypedDict):
    """The curves that have the same steps, with their values by the parts of their names.

    A curve is in `billionths`, as whole numbers, if these have fewer digits than its values.
    """

    steps: list[float]
    values: Parts
    billionths: NotRequired[Parts]


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
        ValueError: the text is no JSON, has a field twice, or a table of its curves, settings or
            scores is incomplete.
    """
    content: object = json.loads(text, object_pairs_hook=distinct_fields)
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
        curves_of_steps = columns.setdefault(steps, {})
        curves_of_steps[name] = shorten_curve(values, curves_of_steps)
    return [curve_table([*steps], values) for steps, values in columns.items()]


def shorten_curve(values: list[float], curves: Mapping[str, CurveValues]) -> CurveValues:
    """Return the number of a constant curve, the name of an equal one among others, or values."""
    if values and values.count(values[0]) == len(values):
        return values[0]
    return next((name for name, curve in curves.items() if curve == values), values)


def curve_table(steps: list[float], values: Mapping[str, CurveValues]) -> CurveTable:
    """Return the table of the curves that have these steps."""
    scaled_columns = {
        n: scaled for n, column in values.items() if (scaled := in_billionths(column))
    }
    unscaled_columns = {
        name: column for name, column in values.items() if name not in scaled_columns
    }
    table: CurveTable = {"steps": steps, "values": by_part(unscaled_columns)}
    if scaled_columns:
        table["billionths"] = by_part(scaled_columns)
    return table


def in_billionths(values: CurveValues) -> list[float] | None:
    """Return values in billionths if these are whole and have fewer digits, else None."""
    if not isinstance(values, list):
        return None
    scaled: list[float] = [round(value * BILLION) for value in values]
    text = line_of(values)
    has_fewer_digits = len(line_of(scaled)) < len(text)
    return scaled if has_fewer_digits and line_of(from_billionths(scaled)) == text else None


def from_billionths(billionths: list[float]) -> list[float]:
    """Return the numbers that are these billionths, whole ones as int."""
    return [n / BILLION if n % BILLION else n // BILLION for n in billionths]


def by_part(values: Mapping[str, CurveValues]) -> Parts:
    """Return values with names `part/rest` in a mapping of their own, under `part/`."""
    parts: Parts = {}
    for name, value in values.items():
        part, slash, suffix = name.partition("/")
        under = cast(dict[str, CurveValues], parts.setdefault(part + slash, {}) if slash else parts)
        under[suffix if slash else part] = value
    return parts


def by_name(parts: Parts) -> dict[str, CurveValues]:
    """Return the values that `by_part` put under parts of names."""
    columns: dict[str, CurveValues] = {}
    for name, stored in parts.items():
        under = stored if isinstance(stored, dict) else {"": stored}
        columns |= {name + suffix: values for suffix, values in under.items()}
    return columns


def read_curves(tables: list[CurveTable]) -> Curves:
    """Return the curves of tables as [step, value] pairs, sorted by name.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the tables are not of `curve_tables`.
    """
    curves: dict[str, list[list[float]]] = {}
    for table in tables:
        scaled_columns = cast(dict[str, list[float]], by_name(table.get("billionths", {})))
        columns = by_name(table["values"]) | {
            n: from_billionths(column) for n, column in scaled_columns.items()
        }
        for name, stored in columns.items():
            values = columns[stored] if isinstance(stored, str) else stored
            column = cast(
                list[float], values if isinstance(values, list) else [values] * len(table["steps"])
            )
            curves[name] = [*map(list, zip(table["steps"], column, strict=True))]
    return dict(sorted(curves.items()))


def changed_rows(start: Scores, rows: Scores) -> Scores:
    """Return each row of scores without the fields that are equal in its row of the start.

    A row stays whole where that of the start is absent, of another benchmark or has more fields.
    """
    pairs = zip_longest(start[: len(rows)], rows)
    return [row if old is None else changed_row(old, row, BENCHMARK) for old, row in pairs]


def changed_row(base: JsonFields, row: JsonFields, mark: str) -> JsonFields:
    """Return the fields of a row that differ from those of another row.

    The row stays whole, with its field `mark`, if that differs or the other row has more fields.
    """
    if not base.keys() <= row.keys() or base[mark] != row[mark]:
        return row
    return {
        name: value
        for name, value in row.items()
        if name not in base or line_of(base[name]) != line_of(value)
    }


def whole_rows(start: Scores, rows: Scores) -> Scores:
    """Return rows of scores with the fields that `changed_rows` left out.

    Raises:
        LookupError, TypeError: the rows are not of `changed_rows`, or the start lacks one.
    """
    return [
        row if BENCHMARK in row else {**start[position], **row} for position, row in enumerate(rows)
    ]


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
    START: lambda record: [changed_row(COMMON, row, METRIC) for row in record[START]],
    SCORES: lambda record: changed_rows(record.get(START, []), record[SCORES]),
}
READERS: Mapping[str, Callable[[Record], object]] = {  # the start before what differs from it
    CURVES: lambda record: read_curves(record[CURVES]),
    CONFIG: lambda record: read_settings(record[CONFIG]),
    START: lambda record: [row if METRIC in row else COMMON | row for row in record[START]],
    SCORES: lambda record: whole_rows(record.get(START, []), record[SCORES]),
}
