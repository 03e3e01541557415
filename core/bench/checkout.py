"""Projects the size of the records and samples of all papers from those of one paper."""

from collections.abc import Sequence
from statistics import mean

from core.records.places import no_runs, record_file, samples_file
from core.records.record import read_records, standard
from core.records.sample_files import held_out_digests
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
        starts.setdefault(run["seed"], set()).update(of_start(run))
    start = mean(map(size_of, starts.values()))
    main_arm, other_arms = (
        mean_size([run for run in runs if run["main"] is is_main]) for is_main in (True, False)
    )
    return papers * seeds * (main_arm + (arms - 1) * other_arms) + seeds * start


def mean_size(runs: Sequence[RunRecord]) -> float:
    """Return the mean bytes that a run adds to those of its starting model; 0 without runs."""
    sizes = [size_of(of_policy(run) - of_start(run)) + record_size(run) for run in runs]
    return mean(sizes) if sizes else 0.0


def of_start(run: RunRecord) -> set[str]:
    """Return the digests of the samples that a run drew from its starting model."""
    samples = {change["before"]["digest"] for change in run["sampling"].values()}
    heldout = {digest for step, digest in held_out_digests(run).items() if step == "0"}
    return {row["digest"] for row in run["start_scores"]} | samples | heldout


def of_policy(run: RunRecord) -> set[str]:
    """Return the digests of the samples that a run drew from its policy, while training too."""
    samples = {change["after"]["digest"] for change in run["sampling"].values()}
    return {row["digest"] for row in run["scores"]} | samples | {*held_out_digests(run).values()}


def size_of(digests: set[str]) -> int:
    """Return the total bytes of files of samples."""
    return sum(samples_file(digest).stat().st_size for digest in digests)


def record_size(run: RunRecord) -> int:
    """Return the bytes of a record."""
    return record_file(run["paper"], run["digest"]).stat().st_size
