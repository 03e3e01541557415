"""A collection of the size that is aimed at: copies of a paper, of its records and samples."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from math import lcm
from pathlib import Path
from tempfile import TemporaryDirectory

from core.models.builds import BUILDS
from core.paper.registry import GROUP, find_entry
from core.records.accepted import run_name
from core.records.answers import content_of, name_of
from core.records.files import write_atomic
from core.records.places import ACCEPTED, SAMPLES, Shelf, results, samples_file
from core.records.record import read_records, standard
from core.records.schema import Record
from eval.errors import BadValue
from eval.pocket.suites import DRAWS
from eval.samples.store import read_samples, write_samples

PACKAGE = "copied_papers"


@contextmanager
def collection(slug: str, papers: int, runs: int) -> Iterator[dict[str, str]]:
    """The environment in which a command finds so many papers with runs: this one and its copies.

    Each has the records of this one, and more seeds of its first run to come to at least `runs`.
    The other papers that are registered are there too, without records.

    Raises:
        BadValue: the paper's records are not here to be copied.
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
    """A distribution whose package has a module for every copy of a paper."""
    entry = find_entry(slug)
    spec = find_spec(entry.module)
    if spec is None or spec.origin is None:
        raise BadValue(f"{entry.module} has no source to copy")
    source = Path(spec.origin).read_text(encoding="utf-8")
    package, about = site / PACKAGE, site / f"{PACKAGE}-1.dist-info"
    for made in (package, about):
        made.mkdir(parents=True)
    (package / "__init__.py").touch()
    for copy in copies:
        text = source.replace(f'slug="{slug}"', f'slug="{copy}"')
        (package / f"{copy.replace('-', '_')}.py").write_text(text, encoding="utf-8")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\ncopies = {PACKAGE}\n")


def copy_samples(folder: Path, records: str) -> None:
    """The files of samples that records refer to."""
    folder.mkdir(parents=True)
    for path in (results() / SAMPLES).iterdir():
        if path.name.partition(".")[0] in records:
            shutil.copyfile(path, folder / path.name)


def copy_records(folder: Path, records: Sequence[Record], slug: str, runs: int) -> None:
    """The records as those of another paper, with more seeds of a run, all of them accepted.

    What referred to a record refers to its copy.
    """
    folder.mkdir(parents=True)
    found = [record for record in records if record["kind"] == "run"]
    others = [record for record in records if record["kind"] not in ("run", "claims")]
    claims = [record for record in records if record["kind"] == "claims"]
    more = [another_seed(found[0], number, folder) for number in range(1, 1 + runs - len(found))]
    copied = {slug: folder.name}
    accepted: dict[str, str] = {}
    for record in [*found, *more, *others, *claims]:
        text = json.dumps(record | {"supersedes": None}, sort_keys=True, ensure_ascii=False)
        for old, new in copied.items():
            text = text.replace(old, new)
        content = json.loads(text)
        name = name_of(content)
        seal = {"content": content_of(content)} if "content" in content else {}
        write_atomic(folder / f"{name}.json", json.dumps(content | seal, indent=1) + "\n")
        copied |= {} if record in more else {record["digest"]: name}
        accepted |= {run_name(content): name} if record["kind"] == "run" else {}
    write_atomic(folder / ACCEPTED, json.dumps({"runs": accepted}))


def another_seed(run: Record, number: int, folder: Path) -> Record:
    """A run with other weights, curves and answers than the one that it is made from.

    Its seed begins with the same build and is asked the same problems.
    """
    seed = run["seed"] + number * lcm(DRAWS, *map(len, BUILDS.values()))
    first, *rows = run["scores"]
    kept = read_samples(samples_file(first["digest"]), first["digest"])
    spoken = [replace(kept[0], output=kept[0].output + " " * (number + 1)), *kept[1:]]
    place = folder.with_name(SAMPLES)
    digest = write_samples(place / "new", spoken)
    (place / "new").replace(place / f"{digest}.jsonl.gz")
    return run | {
        "seed": seed,
        "train": run["train"] | {"weights": str(seed)},
        "curves": run["curves"] | {"seed": [[1, seed]]},
        "scores": [first | dict.fromkeys(first.keys() & {"digest", "texts"}, digest), *rows],
    }
