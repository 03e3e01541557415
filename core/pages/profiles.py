"""Pages of profiles: what each algorithm is good for, all of them in a table, and the probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from core.pages.profile_pictures import curves_picture, scores_picture
from core.profiles.findings import FINDINGS
from core.profiles.mechanisms import CHANCE, MECHANISMS, PLAIN
from core.profiles.probes import PROBES, Probe
from core.profiles.scores import (
    Aggregates,
    Row,
    aggregates,
    effect_of,
    pair_records,
    profiles,
    rate_of,
    same_processor,
    score_rows,
    values_of,
)
from core.records.files import write_atomic
from core.records.places import Shelf
from core.records.record import Record
from core.rewards import Accuracy
from core.stages.stage import UNFIT
from eval.errors import BadValue
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
    return {None: NO_SCORE, 0: ALIKE, 1: BETTER, -1: WORSE}[row.sign]


def with_interval(score: ProbeScore | None) -> str:
    """Return a number with its interval as text; a dash for none."""
    return "-" if score is None else effect(score.value, score.low, score.high)


def probe_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row in a terminal: name, values, difference, score, word or reason."""
    numbers = ("-" if value is None else short(value) for value in (row.value, row.base))
    unit = row.probe.unit
    apart = "-" if row.difference is None else f"{with_interval(row.difference)} {unit}"
    word = ", ".join((word_of(row), *row.remarks))
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
    base: Record
    rows: Mapping[str, ShownRow]
    aggregates: Aggregates | None
    path: str

    @property
    def finding(self) -> str | None:
        """Return the finding about this algorithm with its numbers.

        None if none is written, or if the scores do not support it.
        """
        finding = FINDINGS.get(self.name)
        rows = {name: shown.row for name, shown in self.rows.items()}
        against_plain = self.base["arm"] == PLAIN.name
        if finding is None or not against_plain or not finding.holds(rows):
            return None
        apart = {
            name: f"{row.difference} {rows[name].probe.unit}" for name, row in self.rows.items()
        }
        return finding.text.format_map(apart)

    @property
    def mean(self) -> float | None:
        """The interquartile mean of the scores; None without scores."""
        return self.aggregates and self.aggregates.mean.value


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Accuracies in percent after one training: their mean, lowest and highest over the seeds."""

    mean: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{short(self.mean)} ({short(self.lowest)} to {short(self.highest)})"


def ends_of(record: Record) -> dict[str, Ends]:
    """Return the accuracies after each training of a profile that has runs, by its name."""
    trainings = {name: fields["runs"] for name, fields in record["trainings"].items()}
    after = {name: [run["accuracy"][1] for run in runs] for name, runs in trainings.items() if runs}
    return {
        name: Ends(mean=fmean(values), lowest=min(values), highest=max(values))
        for name, values in after.items()
    }


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
    newest = [newest_whole(rows) for name, rows in archive.items() if name not in MECHANISMS]
    return [column_of(record, base_of(record, archive), archive) for record in newest]


def base_of(record: Record, archive: Mapping[str, Sequence[Record]]) -> Record:
    """Return the record of plain GRPO to compare with: one of the same processor, if there is.

    Raises:
        BadValue: there is none.
    """
    if PLAIN.name not in archive:
        raise BadValue("no profile of plain GRPO to compare with: run `repro profile grpo` first")
    return newest_whole(same_processor(archive[PLAIN.name], record))


def column_of(record: Record, base: Record, archive: Mapping[str, Sequence[Record]]) -> Column:
    """Return an algorithm with its scores against another one."""
    name, rows = record["arm"], score_rows(record, base, archive)
    return Column(
        name=name,
        record=record,
        base=base,
        rows=shown_rows(rows),
        aggregates=aggregates(rows),
        path=f"{FOLDER}/{file_name(name)}",
    )


def write_profile(record: Record, base: Record) -> Path:
    """Write the page of a profile and all pages of profiles in runs/; return that in Markdown."""
    column = column_of(record, base, profiles())
    files = profiles_files(Shelf.HERE)
    files |= algorithm_files(column, has_table=f"{PAGE}.html" in files)
    for name, content in files.items():
        write_atomic(Shelf.HERE.reports / name, content)
    return Shelf.HERE.reports / f"{column.path}.md"


def write_figure(path: Path, records: Sequence[Record]) -> None:
    """Draw the scores of profiles against plain GRPO into a file, in the format of its suffix.

    Raises:
        BadValue: there is no profile of plain GRPO, or two profiles are of one algorithm.
    """
    archive = profiles()
    rows = {r["arm"]: score_rows(r, base_of(r, archive), archive) for r in records}
    if len(rows) < len(records):
        raise BadValue(f"{', '.join(r['arm'] for r in records)}: expected different algorithms")
    write_atomic(path, scores_picture(rows, PLAIN.name, path.suffix.removeprefix(".")))


def profiles_files(shelf: Shelf) -> dict[str, str | bytes]:
    """Return the table of all profiles, the page of each and that of the probes, by file name.

    Without a profile of plain GRPO there are none.
    """
    archive = profiles(shelf)
    if PLAIN.name not in archive:
        return {}
    columns = columns_of(archive)
    files: dict[str, str | bytes] = {f"{PROBES_PAGE}.md": probes_page(archive)}
    if columns:
        files |= matrix_files(columns)
    for column in columns:
        files |= algorithm_files(column)
    return files


def matrix_files(columns: Sequence[Column]) -> dict[str, str | bytes]:
    """Return the table of all profiles in both formats."""
    cells = [row.word for column in columns for row in column.rows.values() if row.row.score]
    context = {
        "columns": sorted(columns, key=lambda column: -(column.mean or 0.0)),
        "probes": list(PROBES.values()),
        "seeds": sorted({len(column.record["seeds"]) for column in columns}),
        "cells": len(cells),
        "coloured": len(cells) - cells.count(ALIKE),
        "chance": LEVEL * len(cells),
        "script": load_script("sort.js"),
    }
    return {
        f"{PAGE}.{form}": environment(form).get_template(f"profiles.{form}.j2").render(context)
        for form in ("md", "html")
    }


def algorithm_files(column: Column, *, has_table: bool = True) -> dict[str, str | bytes]:
    """Return the page of an algorithm in both formats, with its pictures.

    Args:
        column: The algorithm.
        has_table: Whether there is a table of all algorithms to link to.
    """
    base = column.base
    rows = [shown.row for shown in column.rows.values()]
    context = {
        "column": column,
        "base": base,
        "file": file_name(column.name),
        "words": PROBE_WORDS,
        "finding": column.finding,
        "used": {shown.word for shown in column.rows.values()},
        "with_interval": with_interval,
        "settings": {**column.record["config"]["settings"], **own_rewards(column.record)},
        "ends": {"own": ends_of(column.record), "base": ends_of(base)},
        "has_table": has_table,
        "has_own_rewards": bool(own_rewards(column.record)),
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


def own_rewards(record: Record) -> dict[str, str]:
    """Return the rewards of an algorithm that changes those of a world, as a setting; else none."""
    mechanism = MECHANISMS.get(record["arm"])
    if mechanism is None or mechanism.rewarding is None:
        return {}
    return {"rewards": ", ".join(map(repr, mechanism.rewarding((Accuracy(),))))}


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
    by_chance = [newest_whole(records) for records in [archive.get(CHANCE.name, ())] if records]
    chance = {
        row.probe.name: row.reason or with_interval(row.score)
        for record in by_chance
        for row in score_rows(record, base_of(record, archive), archive)
    }
    rows = [shown_probe(probe, archive, chance.get(probe.name, "-")) for probe in PROBES.values()]
    return environment("md").get_template("probes.md.j2").render(rows=rows)


def shown_probe(probe: Probe, archive: Mapping[str, Sequence[Record]], chance: str) -> ShownProbe:
    """Return a probe with its figures."""
    pair = pair_records(probe, archive)
    with_it, without = (values_of(records, probe.name) for records in pair)
    base = base_of(next((rows[-1] for rows in pair if rows), archive[PLAIN.name][-1]), archive)
    statistic = base["probes"].get(probe.name, {}).get("statistic")
    if CHANCE in probe.pair:
        chance = "one of its pair"  # the score follows from the unit
    first, second = (newest_rate(records, probe) for records in pair)
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


def newest_rate(records: Sequence[Record], probe: Probe) -> float | None:
    """Return the learning rate of the newest record that holds a probe; None without one."""
    rates = [rate_of(record, probe) for record in records if probe.name in record["probes"]]
    return rates[-1] if rates else None
