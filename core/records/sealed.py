"""Runs whose answers are stored without their texts: every outcome, and a digest of the texts."""

from core.records.record import read_records, standard
from core.records.schema import RunRecord, runs_of


def is_sealed(run: RunRecord) -> bool:
    """Whether a run's record names texts that are not kept."""
    after = [change["after"] for change in run["sampling"].values()]
    return any("texts" in row for row in (run["train"], *run["scores"], *after))


def absent_texts(slug: str) -> str:
    """Of which arms the shown runs have no texts by design, in words; empty if all have theirs."""
    runs = [run for run in runs_of(standard(read_records(slug))) if is_sealed(run)]
    arms = ", ".join(sorted({run["arm"] for run in runs}))
    return f"no texts of {arms} are stored, only every outcome and their digests" if runs else ""
