"""A collection of the size that is aimed at: copies of a paper, of its records and samples."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from core.paper.registry import GROUP, find_entry
from core.run.places import SAMPLES, record_files, results
from core.run.records.record import read_record, record_digest
from core.run.records.schema import Record
from eval.errors import BadValue

PACKAGE = "copied_papers"


@contextmanager
def collection(slug: str, papers: int, runs: int) -> Iterator[dict[str, str]]:
    """The environment in which a command finds so many papers with runs: this one and its copies.

    Each has the records of this one, and more seeds of its first run to come to at least `runs`.
    The other papers that are registered are there too, without records.

    Raises:
        BadValue: the paper's records are not here to be copied.
    """
    records = [read_record(path) for path in record_files(slug)]
    if not any(record["kind"] == "run" for record in records):
        raise BadValue(f"no runs of {slug} in {results()}: they are in the repository's checkout")
    with TemporaryDirectory() as name:
        folder = Path(name)
        copies = [f"copy-{number:02}" for number in range(1, papers)]
        publish(folder / "site", slug, copies)
        shutil.copytree(results() / SAMPLES, folder / "results" / SAMPLES)
        for copy in [slug, *copies]:
            copy_records(folder / "results" / copy, records, runs)
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


def copy_records(folder: Path, records: Sequence[Record], runs: int) -> None:
    """The records as those of another paper, with more seeds of a run."""
    folder.mkdir(parents=True)
    found = [record for record in records if record["kind"] == "run"]
    more = [found[0] | {"seed": 1000 + seed} for seed in range(runs - len(found))]
    for record in [*records, *more]:
        content = {k: v for k, v in record.items() if k != "digest"} | {"paper": folder.name}
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / f"{record_digest(content)}.json").write_text(text + "\n", encoding="utf-8")
