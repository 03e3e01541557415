"""Tables by name, from records and the printed numbers of the papers."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core.families.profiles import SCALES
from core.pages.controls import controls_tables
from core.pages.gains_by_form import forms_tables
from core.pages.printed import passages, printed_table
from core.pages.probabilities import quantities_tables
from core.pages.runs import newest, runs_table
from core.paper import Paper
from core.paper.registry import BrokenPaper, Entry, entries
from core.records.places import claims_table, no_runs
from core.records.record import new_record, read_records, standard, write_record
from core.records.schema import Record, runs_of
from core.verdicts.controls import controls_of, shown_records
from eval.errors import BadValue, MissingFile, UnknownName
from eval.samples.prompted_samples import read_graded
from eval.samples.store import Sample
from eval.tables.systems import systems_table
from eval.tables.table import Table

SAMPLES = "samples"


def tables_named(name: str, systems: Sequence[Path] = ()) -> list[Table]:
    """Return the tables of a name: a paper's slug, the name of a layout, or `samples`.

    Args:
        name: of the table or paper.
        systems: files or folders of graded samples, for `samples` only.

    Raises:
        UnknownName: no table or paper has that name.
        BadValue: there is no run yet, or `systems` are given for another table.
    """
    if name == SAMPLES:
        return [compare_files(systems)]
    if systems:
        raise BadValue(f"{name} is made from records: expected no files after it")
    papers_by_slug = entries()
    if name in papers_by_slug:
        return tables_of(papers_by_slug[name].load())
    papers = [
        paper for entry in papers_by_slug.values() if (paper := load_or_none(entry)) is not None
    ]
    layouts = {layout.name: (paper, layout.of) for paper in papers for layout in paper.layouts}
    if name not in layouts:
        raise UnknownName("table or paper", name, {*layouts, *papers_by_slug, SAMPLES})
    paper, place = layouts[name]
    records = standard(read_records(paper.slug))
    if place not in SCALES:
        return [printed_table(paper, place, newest(records, paper, "paper"))]
    if place not in ran_at(records):
        raise BadValue(no_runs(paper.slug))
    return [runs_table(paper, records, place)]


def load_or_none(entry: Entry) -> Paper | None:
    """Load a paper; return None if it is broken, which `repro list` and `repro check` report."""
    try:
        return entry.load()
    except BrokenPaper:
        return None


def tables_of(paper: Paper) -> list[Table]:
    """Return all tables of a paper: the printed ones, and those of its runs at each scale.

    Raises:
        BadValue: the paper prints no number and has no run.
    """
    records = shown_records(paper.slug)
    tables = [
        *printed_tables(paper, records),
        *(table for scale in ran_at(records) for table in scale_tables(paper, records, scale)),
    ]
    if not tables:
        raise BadValue(f"{paper.slug} prints no number, and there are {no_runs(paper.slug)}")
    return tables


def scale_tables(paper: Paper, records: Iterable[Record], scale: str) -> list[Table]:
    """Return the tables of a scale: scores, unless no benchmark was asked, and those beside them.

    Raises:
        BadValue: no run at this scale.
    """
    all_records = list(records)
    scores = runs_table(paper, all_records, scale)
    return [*([scores] if scores.columns else []), *measured_tables(paper, all_records, scale)]


def measured_tables(paper: Paper, records: Iterable[Record], scale: str) -> Iterator[Table]:
    """Yield the tables of a scale beside the scores: gains by form, controls, probabilities."""
    all_records = list(records)
    runs = newest(all_records, paper, scale)
    yield from forms_tables(paper, runs, scale)
    yield from controls_tables(paper, runs, controls_of(all_records, runs), scale)
    yield from quantities_tables(paper, runs, scale)


def printed_tables(paper: Paper, records: Iterable[Record], *, text: bool = True) -> list[Table]:
    """Return a paper's printed tables with our runs at its scale; `text` adds numbers in text."""
    ours = newest(records, paper, "paper")
    return [printed_table(paper, passage, ours) for passage in passages(paper, text=text)]


def ran_at(records: Iterable[Record]) -> list[str]:
    """Return the scales that have runs, the smallest first."""
    return sorted({run["scale"] for run in runs_of(records)}, key=SCALES.index)


def shown_at(records: Iterable[Record]) -> list[str]:
    """Return the scales that have a page: those with runs, and in a checkout the smallest too."""
    ran = ran_at(records)
    first = SCALES[0]
    return [first, *ran] if claims_table().is_file() and first not in ran else ran


def compare_files(paths: Sequence[Path]) -> Table:
    """Return the table of several systems side by side.

    Args:
        paths: of each system, a file of graded samples or a folder of `repro eval --out`.

    Raises:
        MissingFile, DamagedFile: a file is missing or not what was expected.
        BadValue: fewer than two systems, or two of the same path.
    """
    short = [path.name.removesuffix(".gz").removesuffix(".jsonl") for path in paths]
    names = short if len(set(short)) == len(paths) else [str(path) for path in paths]
    if len(set(names)) < len(paths):
        raise BadValue(f"{', '.join(names)}: expected every system once")
    return systems_table({name: samples_of(path) for name, path in zip(names, paths, strict=True)})


def samples_of(path: Path) -> dict[str, list[Sample]]:
    """Read a system's graded samples, by benchmark.

    Raises:
        MissingFile: there are no samples at the path.
    """
    files = sorted(path.glob("*.jsonl*")) if path.is_dir() else [path]
    samples = [sample for file in files for sample in read_graded(file)]
    if not samples:
        raise MissingFile(f"{path}: no graded samples, expected *.jsonl or *.jsonl.gz")
    by_benchmark: dict[str, list[Sample]] = {}
    for sample in samples:
        by_benchmark.setdefault(sample.benchmark, []).append(sample)
    return by_benchmark


def record_reported(paper: Paper) -> Record | None:
    """Write the record of the paper's printed numbers, once; return None if it prints none."""
    if not paper.reported:
        return None
    cells = [number.cell() for number in paper.reported]
    content = {"paper": paper.slug, "scale": "paper", "title": paper.title, "cells": cells}
    # Printed numbers depend on no library.
    return write_record(new_record("reported", **content) | {"versions": {}})
