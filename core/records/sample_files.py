"""Stored samples that a record of a run names."""

from collections.abc import Iterator
from typing import cast

from core.records.schema import AtKCurves, Record, RunRecord, ScoreRow
from core.settings.run_settings import HELD_OUT


def score_rows(run: RunRecord) -> Iterator[tuple[str, str, ScoreRow | AtKCurves]]:
    """Yield suite, mode and row of each score of a run that is computed from samples."""
    for row in (*run["start_scores"], *run["scores"]):
        yield row["benchmark"], row["mode"], row
    for suite, change in run["sampling"].items():
        yield from ((suite, "cot", row) for row in (change["before"], change["after"]))


def sample_files(run: RunRecord | Record) -> dict[str, str]:
    """Return the digest of each file of samples of a run, with the suite that they answer."""
    scored = cast(RunRecord, run)
    files = {row["digest"]: suite for suite, _, row in score_rows(scored)}
    return files | dict.fromkeys(held_out_digests(scored).values(), HELD_OUT)


def held_out_digests(run: RunRecord) -> dict[str, str]:
    """Return the digests of the answers sampled while training.

    Keys are the step; for a benchmark `<suite>/<step>`.
    """
    return run["train"].get("held_out", {})
