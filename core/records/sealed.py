"""Runs whose answers are stored without texts, as outcomes and digests of the texts."""

from core.records.record import read_records, standard
from core.records.schema import RunRecord, runs_of


def is_sealed(run: RunRecord) -> bool:
    """Return whether a run has samples whose texts are not stored."""
    after = [change["after"] for change in run["sampling"].values()]
    return any("texts" in row for row in (run["train"], *run["scores"], *after))


def absent_texts(slug: str) -> str:
    """Return a clause naming the arms of a paper without stored texts; empty if there are none."""
    runs = [run for run in runs_of(standard(read_records(slug))) if is_sealed(run)]
    arms = ", ".join(sorted({run["arm"] for run in runs}))
    return f"no texts of {arms} are stored, only every outcome and their digests" if runs else ""
