"""Pages of profiles: what each algorithm is good for, all of them in a table, and the probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from core.pages.profile_pictures import curves_picture, scores_picture
from core.profiles.mechanisms import CHANCE, MECHANISMS, PLAIN
from core.profiles.probes import PROBES, Probe
from core.profiles.scores import (
    Aggregates,
    Row,
    aggregates,
    effect_of,
    profiles,
    score_rows,
    values_of,
)
from core.records.files import write_atomic
from core.records.places import Shelf
from core.records.record import Record
from core.stages.stage import UNFIT
from eval.stats.probe_scores import PairEffect, ProbeScore
from eval.stats.seeds import LEVEL
from eval.tables.filters import effect, short
from eval.tables.interval_bar import IntervalBar, interval_bar
from eval.tables.probe_words import ALIKE, BETTER, NO_SCORE, PROBE_WORDS, WORSE
from eval.tables.render import environment, load_script

FOLDER, PAGE, PROBES_PAGE = "profile", "profile", "probes"
BAND = 0.2  # a score of a fifth of a mechanism's effect, as wide as the band of pages


def word_of(row: Row) -> str:
    """Return in a word how a row compares with the other algorithm."""
    if row.score is None:
        return NO_SCORE
    if not row.score.is_apart:
        return ALIKE
    return BETTER if row.score.value > 0 else WORSE


def with_interval(score: ProbeScore | None) -> str:
    """Return a number with its interval as text; a dash for none."""
    return "-" if score is None else effect(score.value, score.low, score.high)


def probe_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row in a terminal: name, values, difference, score, word or reason."""
    numbers = ("-" if value is None else short(value) for value in (row.value, row.base))
    unit = row.probe.unit
    apart = "-" if row.difference is None else f"{with_interval(row.difference)} {unit}"
    word = word_of(row)
    return (row.probe.name, *numbers, apart, with_interval(row.score), row.reason or word)


def bar_of(score: ProbeScore | None) -> IntervalBar | None:
    """Return the interval of a score as a bar; None without an interval."""
    if score is None or score.low is None or score.high is None:
        return None
    return interval_bar(score.value, score.low, score.high, BAND)


@dataclass(frozen=True, kw_only=True)
class ShownRow:
    """A probe on the page of an algorithm."""

    row: Row
    word: str
    bar: IntervalBar | None
    score: str
    difference: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """An algorithm in the table of all profiles: its cells by probe, and aggregates."""

    name: str
    record: Record
    rows: Mapping[str, ShownRow]
    aggregates: Aggregates | None
    path: str

    @property
    def mean(self) -> float | None:
        """The interquartile mean of the scores; None without scores."""
        return self.aggregates and self.aggregates.mean.value


def shown_rows(rows: Sequence[Row]) -> dict[str, ShownRow]:
    """Return the rows of a page by the name of their probe."""
    return {
        row.probe.name: ShownRow(
            row=row,
            word=word_of(row),
            bar=bar_of(row.score),
            score=with_interval(row.score),
            difference="-" if row.difference is None else with_interval(row.difference),
        )
        for row in rows
    }


def file_name(algorithm: str) -> str:
    """Return the name of an algorithm as that of a file."""
    return UNFIT.sub("-", algorithm).strip("-")


def newest_whole(records: Sequence[Record]) -> Record:
    """Return the record with the most probes and then the most seeds, the newest of equals."""
    return max(reversed(records), key=lambda one: (len(one["probes"]), len(one["seeds"])))


def columns_of(archive: Mapping[str, Sequence[Record]]) -> list[Column]:
    """Return the algorithms of a table: all but plain GRPO and single mechanisms."""
    base = newest_whole(archive[PLAIN.name])
    return [
        column_of(newest_whole(records), base, archive)
        for name, records in sorted(archive.items())
        if name not in MECHANISMS
    ]


def column_of(record: Record, base: Record, archive: Mapping[str, Sequence[Record]]) -> Column:
    """Return an algorithm with its scores against another one."""
    name, rows = record["arm"], score_rows(record, base, archive)
    return Column(
        name=name,
        record=record,
        rows=shown_rows(rows),
        aggregates=aggregates(rows),
        path=f"{FOLDER}/{file_name(name)}",
    )


def write_profile(record: Record, base: Record) -> Path:
    """Write the page of a profile and all pages of profiles in runs/; return that in Markdown."""
    column = column_of(record, base, profiles())
    files = profiles_files(Shelf.HERE)
    files |= algorithm_files(column, base, has_table=f"{PAGE}.html" in files)
    for name, content in files.items():
        write_atomic(Shelf.HERE.reports / name, content)
    return Shelf.HERE.reports / f"{column.path}.md"


def profiles_files(shelf: Shelf) -> dict[str, str | bytes]:
    """Return the table of all profiles, the page of each and that of the probes, by file name.

    Without a profile of plain GRPO there are none.
    """
    archive = profiles(shelf)
    if PLAIN.name not in archive:
        return {}
    columns, base = columns_of(archive), newest_whole(archive[PLAIN.name])
    files: dict[str, str | bytes] = {f"{PROBES_PAGE}.md": probes_page(archive)}
    if columns:
        files |= matrix_files(columns, base)
    for column in columns:
        files |= algorithm_files(column, base)
    return files


def matrix_files(columns: Sequence[Column], base: Record) -> dict[str, str | bytes]:
    """Return the table of all profiles in both formats."""
    cells = [row for column in columns for row in column.rows.values() if row.row.score]
    coloured = [row for row in cells if row.word != ALIKE]
    context = {
        "columns": sorted(columns, key=lambda column: -(column.mean or 0.0)),
        "probes": [probe for probe in PROBES.values() if probe.name in base["probes"]],
        "base": base,
        "cells": len(cells),
        "coloured": len(coloured),
        "chance": LEVEL * len(cells),
        "script": load_script("sort.js"),
    }
    return {
        f"{PAGE}.{form}": environment(form).get_template(f"profiles.{form}.j2").render(context)
        for form in ("md", "html")
    }


def algorithm_files(
    column: Column, base: Record, *, has_table: bool = True
) -> dict[str, str | bytes]:
    """Return the page of an algorithm in both formats, with its pictures.

    Args:
        column: The algorithm.
        base: The record of the algorithm that it is compared with.
        has_table: Whether there is a table of all algorithms to link to.
    """
    mechanism = MECHANISMS.get(column.name)
    rows = [shown.row for shown in column.rows.values()]
    context = {
        "column": column,
        "base": base,
        "file": file_name(column.name),
        "words": PROBE_WORDS,
        "used": {shown.word for shown in column.rows.values()},
        "with_interval": with_interval,
        "settings": column.record["config"]["settings"],
        "has_table": has_table,
        "has_own_rewards": mechanism is not None and mechanism.rewarding is not None,
    }
    place = column.path
    return {
        **{
            f"{place}.{form}": environment(form).get_template(f"profile.{form}.j2").render(context)
            for form in ("md", "html")
        },
        f"{place}.svg": scores_picture({column.name: rows}, base["arm"]),
        f"{place}-curves.svg": curves_picture({column.name: column.record, base["arm"]: base}),
    }


@dataclass(frozen=True, kw_only=True)
class ShownProbe:
    """A probe on the page of all probes: its pair, its statistic, and the score of chance.

    `rates` are the learning rates of the two of its pair.
    """

    probe: Probe
    effect: PairEffect | None
    with_it: float | None
    without: float | None
    seeds: int
    rates: tuple[float | None, float | None]
    statistic: float | None
    chance: str


def probes_page(archive: Mapping[str, Sequence[Record]]) -> str:
    """Return the page of all probes with the figures that admit them."""
    base = newest_whole(archive[PLAIN.name])
    by_chance = archive.get(CHANCE.name, ())
    chance = {
        row.probe.name: row.reason or with_interval(row.score)
        for row in (score_rows(newest_whole(by_chance), base, archive) if by_chance else ())
    }
    rows = [
        shown_probe(probe, archive, base, chance.get(probe.name, "-")) for probe in PROBES.values()
    ]
    return environment("md").get_template("probes.md.j2").render(rows=rows)


def shown_probe(
    probe: Probe, archive: Mapping[str, Sequence[Record]], base: Record, chance: str
) -> ShownProbe:
    """Return a probe with its figures."""
    with_it, without = (values_of(archive.get(one.name, ()), probe.name) for one in probe.pair)
    statistic = base["probes"].get(probe.name, {}).get("statistic")
    if CHANCE in probe.pair:
        chance = "one of its pair"  # the score follows from the unit
    first, second = (rate_of(archive.get(one.name, ()), probe) for one in probe.pair)
    return ShownProbe(
        probe=probe,
        rates=(first, second),
        effect=effect_of(probe, archive),
        with_it=fmean(with_it.values()) if with_it else None,
        without=fmean(without.values()) if without else None,
        seeds=len(with_it.keys() & without.keys()),
        statistic=fmean(statistic) if statistic else None,
        chance=chance,
    )


def rate_of(records: Sequence[Record], probe: Probe) -> float | None:
    """Return the learning rate of the newest record that holds a probe; None without one."""
    training = probe.training
    rates = [r["rates"][training.base]["best"] for r in records if probe.name in r["probes"]]
    return training.faster * rates[-1] if rates else None
