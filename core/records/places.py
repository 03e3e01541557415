"""Paths of records and pages; imports little, so that the command line starts fast."""

import os
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile

from core.paper.registry import Entry, entries
from eval.errors import BadValue

ACCEPTED = "accepted.json"
SAMPLES = "samples"  # the folder of what starting models answered, and of pairs
PARQUET = ".parquet"  # of stored samples: of a run beside its record, with the same name
OURS = "repro-papers"  # the distribution that this is
DONE = "done.json"  # the note in the folder of a finished stage
MODEL = "model"  # the folder of a trained model in that of its stage
MODELS = {"live": MODEL, "ema": f"{MODEL}-ema", "bema": f"{MODEL}-bema"}  # by the kind of weights
EARLIER = "earlier"  # beside a paper's records: those of pocket worlds that are gone


def root() -> Path:
    """Return the folder of runs/, results/ and reports/: REPRO_ROOT, else the working folder.

    Raises:
        BadValue: REPRO_ROOT is a file.
    """
    folder = Path(os.environ.get("REPRO_ROOT") or Path.cwd())
    if folder.is_file():
        raise BadValue(f"REPRO_ROOT={folder}: a file, expected the folder of runs/ and results/")
    return folder


def results() -> Path:
    """Return the folder of the published records."""
    return root() / "results"


def own_results() -> Path:
    """Return the folder of the records that commands write, beside the runs."""
    return root() / "runs" / "results"


class Shelf(Enum):
    """The records that are read, and the folder of the pages made of them.

    `PUBLISHED` are `results/` and `reports/`, which `repro publish` alone changes. `HERE` are the
    published records and those that commands wrote in `runs/results/`, with pages in
    `runs/reports/`.
    """

    PUBLISHED = "published"
    HERE = "here"

    @property
    def records(self) -> tuple[Path, ...]:
        """The folders of the records."""
        return (results(),) if self is Shelf.PUBLISHED else (results(), own_results())

    @property
    def reports(self) -> Path:
        """The folder of the pages."""
        return root() / ("reports" if self is Shelf.PUBLISHED else "runs/reports")


def page_of(slug: str, scale: str) -> str:
    """Return the path of a paper's page at a scale, in reports/ and without a suffix."""
    return f"{slug}/{scale}/report"


def report_folder(slug: str, scale: str, shelf: Shelf) -> Path:
    """Return the folder of a paper's page at a scale, with its tables and figures."""
    return (shelf.reports / page_of(slug, scale)).parent


def claims_table() -> Path:
    """Return the path of the claims of all known papers, a file that only a checkout has."""
    return root() / "papers" / "claims.csv"


def own_entries() -> list[Entry]:
    """Return the papers that the records and pages here are about.

    In a checkout these are all known papers. Elsewhere they are the papers of other distributions
    and plug-ins, those that cannot be loaded, and those with records here.
    """
    return [
        entry
        for entry in entries().values()
        if claims_table().is_file()
        or entry.distribution != OURS
        or entry.problem
        or record_files(entry.slug)
    ]


def no_runs(slug: str = "PAPER") -> str:
    """Return the message that there are no runs to show and how to make some."""
    return (
        f"no runs of standard settings in {results()} or {own_results()}: `repro run {slug}` "
        "makes one; those of the repository are in its checkout, not in what pip installs"
    )


def check_writable(*folders: Path) -> None:
    """Try to write in folders, or in their nearest existing parents.

    Raises:
        BadValue: with the folder and the reason.
    """
    for folder in folders:
        ancestor = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        try:
            TemporaryFile(dir=ancestor).close()
        except OSError as error:
            raise BadValue(
                f"{folder} cannot be written ({error.strerror}): make it a folder that can, or "
                "give another place for runs/, results/ and reports/ in REPRO_ROOT"
            ) from error


def from_here(path: Path) -> Path:
    """Return a path relative to the working folder if it lies below, else unchanged."""
    working_folder = Path.cwd()
    return path.relative_to(working_folder) if path.is_relative_to(working_folder) else path


def record_files(slug: str | None = None, shelf: Shelf = Shelf.HERE) -> list[Path]:
    """Return the record files of a shelf, of one paper or of all."""
    folders = shelf.records
    return [path for folder in folders for path in records_in(folder.glob(f"{slug or '*'}/*.json"))]


def earlier_files(slug: str) -> list[Path]:
    """Return the record files of a paper that are kept and no longer shown."""
    return records_in((results() / slug / EARLIER).glob("*.json"))


def records_in(files: Iterable[Path]) -> list[Path]:
    """Return the sorted paths of records, without the list of accepted records."""
    return sorted(path for path in files if path.name != ACCEPTED)


def record_file(slug: str, digest: str) -> Path:
    """Return the path of a record of a paper."""
    return published_or_local(f"{slug}/{digest}.json")


def run_samples_file(slug: str, digest: str) -> Path:
    """Return the path of the samples of a run, beside its record."""
    path = published_or_local(f"{slug}/{digest}{PARQUET}")
    earlier = results() / slug / EARLIER / path.name
    return earlier if earlier.is_file() and not path.is_file() else path


def start_samples_file(digest: str) -> Path:
    """Return the path of a set of samples of a starting model, which many runs share."""
    return stored_file(digest)


def stored_file(digest: str) -> Path:
    """Return the path of samples of a starting model, or of pairs, by the digest of their rows."""
    return published_or_local(f"{SAMPLES}/{digest}{PARQUET}")


def published_or_local(name: str) -> Path:
    """Return a path in results/, or in runs/results/ if the file exists only there."""
    published, local = results() / name, own_results() / name
    return local if local.is_file() and not published.is_file() else published
