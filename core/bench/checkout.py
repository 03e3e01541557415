"""How large the records and samples of all papers would be, from those of one."""

from collections.abc import Sequence
from statistics import mean

from core.records.places import no_runs, record_file, samples_file
from core.records.record import read_records, standard
from core.records.sample_files import held_out_digests
from core.records.schema import RunRecord, runs_of
from eval.errors import BadValue

ARMS = 119 / 28  # trainings that claims of a paper need, of the 28 of family grpo that are run


def projected_bytes(slug: str, papers: int, seeds: int, arms: float = ARMS) -> float:
    """The files of so many papers, each with so many arms that are run as this paper's are.

    One of them is the main arm, whose texts are stored. What is asked of the starting model is
    stored once for each seed, as it is for all papers.

    Raises:
        BadValue: the paper has no runs here.
    """
    runs = runs_of(standard(read_records(slug)))
    if not runs:
        raise BadValue(no_runs(slug))
    started: dict[int, set[str]] = {}
    for run in runs:
        started.setdefault(run["seed"], set()).update(of_start(run))
    start = mean(map(size_of, started.values()))
    main, other = (
        mean_size([run for run in runs if run["main"] is told]) for told in (True, False)
    )
    return papers * seeds * (main + (arms - 1) * other) + seeds * start


def mean_size(runs: Sequence[RunRecord]) -> float:
    """The bytes that a run adds to what its starting model has given; 0 without runs."""
    sizes = [size_of(of_policy(run) - of_start(run)) + record_size(run) for run in runs]
    return mean(sizes) if sizes else 0.0


def of_start(run: RunRecord) -> set[str]:
    """The digests of what a run asked its starting model."""
    drawn = {change["before"]["digest"] for change in run["sampling"].values()}
    heldout = {digest for step, digest in held_out_digests(run).items() if step == "0"}
    return {row["digest"] for row in run["start_scores"]} | drawn | heldout


def of_policy(run: RunRecord) -> set[str]:
    """The digests of what a run asked its policy, while it was trained and afterwards."""
    drawn = {change["after"]["digest"] for change in run["sampling"].values()}
    return {row["digest"] for row in run["scores"]} | drawn | {*held_out_digests(run).values()}


def size_of(digests: set[str]) -> int:
    """The bytes of files of samples."""
    return sum(samples_file(digest).stat().st_size for digest in digests)


def record_size(run: RunRecord) -> int:
    """The bytes of a record."""
    return record_file(run["paper"], run["digest"]).stat().st_size
