"""Stored samples of recorded runs: their paths, reading, writing and checking."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.records.files import no_space
from core.records.places import PARQUET, SAMPLES, run_samples_file, start_samples_file
from core.records.sample_files import own_sets, start_digests
from core.records.schema import RunRecord
from eval.errors import DamagedFile, ReproError
from eval.samples.parquet import read_columns, read_set, sets_problem, write_sets
from eval.samples.store import ADVICE, Sample

START = "start"  # the name of the only set in a file of a starting model


@dataclass(frozen=True)
class SampleSet:
    """A set of samples in a Parquet file, with its name in the file and its recorded digest."""

    path: Path
    name: str
    digest: str

    def read(self) -> list[Sample]:
        """Return the samples.

        Raises:
            MissingFile: there is no such file.
            DamagedFile: the file or the set is not what was written.
        """
        return read_set(self.path, self.name, self.digest)


def sample_set(run: RunRecord, digest: str) -> SampleSet:
    """Return the set of a run that has a digest.

    Raises:
        DamagedFile: the record names no set with this digest.
    """
    if digest in start_digests(run):
        return SampleSet(start_samples_file(digest), START, digest)
    path = run_samples_file(run["paper"], run["digest"])
    for name, set_digest in own_sets(run).items():
        if set_digest == digest:
            return SampleSet(path, name, digest)
    raise DamagedFile(f"{path}: its record names no samples with the digest {digest}; {ADVICE}")


def read_run_samples(run: RunRecord, digest: str) -> list[Sample]:
    """Return the samples of the set of a run that has a digest.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: the file or the set is not what was written, or the record names no such set.
    """
    return sample_set(run, digest).read()


def sample_files_of(run: RunRecord) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield each file of samples of a run, with the digests of its sets by name."""
    if sets := own_sets(run):
        yield run_samples_file(run["paper"], run["digest"]), sets
    for digest in sorted(start_digests(run)):
        yield start_samples_file(digest), {START: digest}


def file_problem(path: Path, sets: Mapping[str, str]) -> str:
    """Return one line on how a file differs from these sets; empty if it does not differ."""
    try:
        problem = sets_problem(read_columns(path), sets)
    except ReproError as error:
        return str(error)
    return problem and f"{path}: {problem}; {ADVICE}"


def write_run_samples(
    run: RunRecord, read: Callable[[str], Sequence[Sample]], folder: Path
) -> None:
    """Write the samples of a run to a folder of records, except files that exist and are whole.

    Args:
        run: A record with its digest.
        read: Returns the samples of a digest.
        folder: `results/` or `runs/results/`.

    Raises:
        DiskFull: there was no space.
    """
    for path, sets in sample_files_of(run):
        if path.is_file() and not file_problem(path, sets):
            continue
        place = SAMPLES if START in sets else run["paper"]
        target = folder / place / path.with_suffix(PARQUET).name
        with no_space(target):
            write_sets(target, {name: read(digest) for name, digest in sets.items()})
