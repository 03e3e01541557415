"""A large collection for benchmarks: copies of a paper with its records and samples."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from math import lcm
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from core.models.builds import BUILDS
from core.paper.registry import GROUP, find_entry
from core.records.accepted import run_name
from core.records.answers import content_of, name_of
from core.records.files import write_atomic
from core.records.places import (
    ACCEPTED,
    PARQUET,
    SAMPLES,
    Shelf,
    results,
    run_samples_file,
    start_samples_file,
)
from core.records.record import read_records, standard
from core.records.run_samples import read_run_samples
from core.records.sample_files import own_sets, start_digests
from core.records.schema import Record, RunRecord, runs_of
from eval.errors import BadValue
from eval.pocket.suites import DRAWS
from eval.samples.parquet import read_columns, write_sets
from eval.samples.store import Sample, digest_of

PACKAGE = "copied_papers"
ORDER = {"run": 0, "claims": 2}  # of records: a record is copied after those it refers to


@contextmanager
def collection(slug: str, papers: int, runs: int) -> Iterator[dict[str, str]]:
    """Copy a paper with its records; yield the environment in which commands find the copies.

    There are `papers` papers with runs: the paper itself and its copies. Each has the paper's
    records and additional seeds of its first run, at least `runs` runs in all. Other registered
    papers are found too, without records.

    Raises:
        BadValue: the paper's records are not available here.
    """
    records = standard(read_records(slug, Shelf.PUBLISHED))
    if not any(record["kind"] == "run" for record in records):
        raise BadValue(f"no runs of {slug} in {results()}: they are in the repository's checkout")
    with TemporaryDirectory() as name:
        folder = Path(name)
        copies = [f"copy-{number:02}" for number in range(1, papers)]
        publish(folder / "site", slug, copies)
        copy_start_samples(folder / "results" / SAMPLES, runs_of(records))
        for copy in [slug, *copies]:
            copy_records(folder / "results" / copy, records, slug, runs)
        path = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        yield {"REPRO_ROOT": name, "PYTHONPATH": os.pathsep.join(path)}


def publish(site: Path, slug: str, copies: Sequence[str]) -> None:
    """Write a distribution whose package has a module for every copy of a paper.

    Raises:
        BadValue: the paper's module has no source.
    """
    entry = find_entry(slug)
    spec = find_spec(entry.module)
    if spec is None or spec.origin is None:
        raise BadValue(f"{entry.module} has no source to copy")
    source = Path(spec.origin).read_text(encoding="utf-8")
    package, about = site / PACKAGE, site / f"{PACKAGE}-1.dist-info"
    for folder in (package, about):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    for copy in copies:
        text = source.replace(f'slug="{slug}"', f'slug="{copy}"')
        (package / f"{copy.replace('-', '_')}.py").write_text(text, encoding="utf-8")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\ncopies = {PACKAGE}\n")


def copy_start_samples(folder: Path, runs: Sequence[RunRecord]) -> None:
    """Copy the samples of the starting models of runs to a folder."""
    folder.mkdir(parents=True)
    for digest in {digest for run in runs for digest in start_digests(run)}:
        path = start_samples_file(digest)
        shutil.copyfile(path, folder / path.name)


def copy_records(folder: Path, records: Sequence[Record], slug: str, runs: int) -> None:
    """Write the records as those of another paper, with more seeds of one run, all accepted.

    References to a record become references to its copy.
    """
    folder.mkdir(parents=True)
    ordered = sorted(records, key=lambda record: ORDER.get(record["kind"], 1))
    originals = [record for record in ordered if record["kind"] == "run"]
    missing = range(1, 1 + runs - len(originals))
    answers: dict[str, list[Sample]] = {}  # of added runs, by digest
    first = min(originals, key=lambda run: run["seed"])
    added = [another_seed(first, number, answers) for number in missing]
    replacements = {slug: folder.name}
    accepted: dict[str, str] = {}
    for record in [*originals, *added, *ordered[len(originals) :]]:
        content = copy_record(folder, record, replacements)
        name = name_of(content)
        copy_run_samples(record, folder / f"{name}{PARQUET}", answers)
        if record not in added:
            replacements[record["digest"]] = name
        if record["kind"] == "run":
            accepted[run_name(cast(RunRecord, content))] = name
    write_atomic(folder / ACCEPTED, json.dumps({"runs": accepted}))


def copy_record(folder: Path, record: Record, replacements: Mapping[str, str]) -> Record:
    """Write a copy of a record with texts replaced, and return its content without the seal."""
    text = json.dumps(record | {"supersedes": None}, sort_keys=True, ensure_ascii=False)
    for old, new in replacements.items():
        text = text.replace(old, new)
    content = json.loads(text)
    seal = {"content": content_of(content)} if "content" in content else {}
    name = name_of(content)
    write_atomic(folder / f"{name}.json", json.dumps(content | seal, indent=1) + "\n")
    return content


def copy_run_samples(record: Record, path: Path, answers: Mapping[str, list[Sample]]) -> None:
    """Write the samples of a run to a file; of a record of another kind nothing is written.

    Args:
        record: A run with the digest of the run that it was copied from.
        path: The file to write.
        answers: Samples that are not stored, by digest.
    """
    for run in runs_of([record]):
        source = run_samples_file(run["paper"], run["digest"])
        sets = own_sets(run)
        if answers.keys().isdisjoint(sets.values()):
            shutil.copyfile(source, path)
            continue
        stored = read_columns(source)
        write_sets(
            path,
            {
                name: answers[digest] if digest in answers else stored.samples(name)
                for name, digest in sets.items()
            },
        )


def another_seed(run: Record, number: int, answers: dict[str, list[Sample]]) -> Record:
    """Return a run with another seed, other weights, curves and answers than the given run.

    Its seed starts from the same build and draws the same problems. Its changed samples are put
    into `answers`, by their digest.
    """
    seed = run["seed"] + number * lcm(DRAWS, *map(len, BUILDS.values()))
    first, *rows = run["scores"]
    samples = read_run_samples(cast(RunRecord, run), first["digest"])
    spoken = [replace(samples[0], output=samples[0].output + " " * (number + 1)), *samples[1:]]
    digest = digest_of(spoken)
    answers[digest] = spoken
    return run | {
        "seed": seed,
        "train": run["train"] | {"weights": str(seed)},
        "curves": run["curves"] | {"seed": [[1, seed]]},
        "scores": [first | dict.fromkeys(first.keys() & {"digest", "texts"}, digest), *rows],
    }
