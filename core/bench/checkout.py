"""Projects the size of the records and samples of all papers from those of one paper."""

from collections.abc import Sequence
from statistics import mean

from core.records.places import no_runs, record_file, run_samples_file, start_samples_file
from core.records.record import read_records, standard
from core.records.sample_files import start_digests
from core.records.schema import RunRecord, runs_of
from eval.errors import BadValue

ARMS = 119 / 28  # trainings per paper: 119 for the claims of the 28 papers of family grpo


def projected_bytes(slug: str, papers: int, seeds: int, arms: float = ARMS) -> float:
    """Return the projected size of the files of `papers` papers, each with `arms` arms.

    One arm of each paper is the main arm, whose texts are stored. Samples of the starting model are
    stored once for each seed, for all papers together.

    Raises:
        BadValue: the paper has no runs here.
    """
    runs = runs_of(standard(read_records(slug)))
    if not runs:
        raise BadValue(no_runs(slug))
    starts: dict[int, set[str]] = {}
    for run in runs:
        starts.setdefault(run["seed"], set()).update(start_digests(run))
    start = mean(
        sum(start_samples_file(digest).stat().st_size for digest in digests)
        for digests in starts.values()
    )
    main_arm, other_arms = (
        mean_size([run for run in runs if run["main"] is is_main]) for is_main in (True, False)
    )
    return papers * seeds * (main_arm + (arms - 1) * other_arms) + seeds * start


def mean_size(runs: Sequence[RunRecord]) -> float:
    """Return the mean bytes that a run adds to those of its starting model; 0 without runs."""
    sizes = [record_size(run) for run in runs]
    return mean(sizes) if sizes else 0.0


def record_size(run: RunRecord) -> int:
    """Return the bytes of a record and of its samples."""
    paths = (
        record_file(run["paper"], run["digest"]),
        run_samples_file(run["paper"], run["digest"]),
    )
    return sum(path.stat().st_size for path in paths)
