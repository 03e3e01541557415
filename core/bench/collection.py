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
from core.records.places import ACCEPTED, SAMPLES, Shelf, results, samples_file
from core.records.record import read_records, standard
from core.records.schema import Record, RunRecord
from eval.errors import BadValue
from eval.pocket.suites import DRAWS
from eval.samples.store import read_samples, write_samples

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
        copy_samples(folder / "results" / SAMPLES, json.dumps(records))
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


def copy_samples(folder: Path, records: str) -> None:
    """Copy the files of samples that the records refer to."""
    folder.mkdir(parents=True)
    for path in (results() / SAMPLES).iterdir():
        if path.name.partition(".")[0] in records:
            shutil.copyfile(path, folder / path.name)


def copy_records(folder: Path, records: Sequence[Record], slug: str, runs: int) -> None:
    """Write the records as those of another paper, with more seeds of one run, all accepted.

    References to a record become references to its copy.
    """
    folder.mkdir(parents=True)
    ordered = sorted(records, key=lambda record: ORDER.get(record["kind"], 1))
    originals = [record for record in ordered if record["kind"] == "run"]
    missing = range(1, 1 + runs - len(originals))
    added = [another_seed(originals[0], number, folder) for number in missing]
    replacements = {slug: folder.name}
    accepted: dict[str, str] = {}
    for record in [*originals, *added, *ordered[len(originals) :]]:
        content = copy_record(folder, record, replacements)
        name = name_of(content)
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


def another_seed(run: Record, number: int, folder: Path) -> Record:
    """Return a run with another seed, other weights, curves and answers than the given run.

    Its seed starts from the same build and draws the same problems.
    """
    seed = run["seed"] + number * lcm(DRAWS, *map(len, BUILDS.values()))
    first, *rows = run["scores"]
    samples = read_samples(samples_file(first["digest"]), first["digest"])
    spoken = [replace(samples[0], output=samples[0].output + " " * (number + 1)), *samples[1:]]
    place = folder.with_name(SAMPLES)
    digest = write_samples(place / "new", spoken)
    (place / "new").replace(place / f"{digest}.jsonl.gz")
    return run | {
        "seed": seed,
        "train": run["train"] | {"weights": str(seed)},
        "curves": run["curves"] | {"seed": [[1, seed]]},
        "scores": [first | dict.fromkeys(first.keys() & {"digest", "texts"}, digest), *rows],
    }
