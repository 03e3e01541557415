"""Tables by name, from the records in results/; printed numbers are a record of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from core.paper import Paper
from core.paper.registry import find_paper
from core.run.places import no_runs
from core.run.records.record import Record, new_record, read_records, standard, write_record
from eval.errors import BadValue, MissingFile, UnknownName
from eval.samples.prompted_samples import read_graded
from eval.samples.store import Sample
from eval.tables.deepseekmath import SLUG, benchmark_table, pocket_table
from eval.tables.systems import systems_table
from eval.tables.table import Table

TABLES: Mapping[str, Callable[[list[Record]], Table]] = {
    "deepseekmath": benchmark_table,
    "deepseekmath-pocket": lambda records: pocket_table(
        records, arms=shown_arms(find_paper(SLUG), records)
    ),
}


def make_table(name: str, systems: Sequence[Path] = ()) -> Table:
    """The table of that name from the records in results/; `samples` compares `systems`.

    Raises:
        UnknownName: there is no such table.
        BadValue: a record that it needs is not there yet, or systems for a table of records.
    """
    if name == "samples":
        return compare_files(systems)
    if name not in TABLES:
        raise UnknownName("table", name, {*TABLES, "samples"})
    if systems:
        raise BadValue(f"{name} is made from records: expected no files after it")
    records = standard(read_records(SLUG))
    if not any(record["kind"] == "reported" for record in records):
        records += [record for record in [reported_record(find_paper(SLUG))] if record]
    if name == "deepseekmath-pocket" and not shown_arms(find_paper(SLUG), records):
        raise BadValue(no_runs(SLUG))
    return TABLES[name](records)


def compare_files(paths: Sequence[Path]) -> Table:
    """Systems side by side: each a file of graded samples or a folder of `repro eval --out`.

    Raises:
        MissingFile, DamagedFile: with the file and what was expected there.
        BadValue: fewer than two systems, or two of the same path.
    """
    short = [path.name.removesuffix(".gz").removesuffix(".jsonl") for path in paths]
    names = short if len(set(short)) == len(paths) else [str(path) for path in paths]
    if len(set(names)) < len(paths):
        raise BadValue(f"{', '.join(names)}: expected every system once")
    return systems_table({name: samples_of(path) for name, path in zip(names, paths, strict=True)})


def samples_of(path: Path) -> dict[str, list[Sample]]:
    """A system's graded samples by benchmark."""
    files = sorted(path.glob("*.jsonl*")) if path.is_dir() else [path]
    samples = [sample for file in files for sample in read_graded(file)]
    if not samples:
        raise MissingFile(f"{path}: no graded samples, expected *.jsonl or *.jsonl.gz")
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.benchmark, []).append(sample)
    return found


def shown_arms(paper: Paper, records: list[Record]) -> list[str]:
    """The arms that have run, in the paper's order."""
    ran = {record["arm"] for record in records if record["kind"] == "run"}
    return [arm for arm in (paper.arms or {paper.main_arm: {}}) if arm in ran]


def publish_reported(paper: Paper) -> Record | None:
    """The record of the paper's printed numbers, written once; None if it prints none."""
    record = reported_record(paper)
    return None if record is None else write_record(record)


def reported_record(paper: Paper) -> Record | None:
    """The paper's printed numbers as a record that is not written; None if it prints none."""
    if not paper.reported:
        return None
    cells = [asdict(number) for number in paper.reported]
    content = {"paper": paper.slug, "scale": "paper", "title": paper.title, "cells": cells}
    # Printed numbers depend on no library.
    return new_record("reported", **content) | {"versions": {}}
