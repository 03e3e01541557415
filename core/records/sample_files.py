"""Names and digests of the sets of graded samples of a recorded run."""

from collections.abc import Iterator
from typing import cast

from core.records.metric_names import metric_names
from core.records.schema import AtKCurves, Record, RunRecord, ScoreRow
from core.settings.run_settings import HELD_OUT


def score_rows(run: RunRecord) -> Iterator[tuple[str, str, ScoreRow | AtKCurves]]:
    """Yield suite, mode and row of each score of a run that is computed from samples."""
    for row in (*run["start_scores"], *run["scores"]):
        yield row["benchmark"], row["mode"], row
    for suite, change in run["sampling"].items():
        yield from ((suite, "cot", row) for row in (change["before"], change["after"]))


def sample_files(run: RunRecord | Record) -> dict[str, str]:
    """Return the suite that each set of samples of a run answers, by the digest of the set."""
    scored = cast(RunRecord, run)
    suites = {row["digest"]: suite for suite, _, row in score_rows(scored)}
    return suites | dict.fromkeys(held_out_digests(scored).values(), HELD_OUT)


def start_digests(run: RunRecord) -> set[str]:
    """Return the digests of the sample sets that the starting model of a run answered.

    These are the scores and curves before training, and the held-out answers before the first step.
    """
    before = {change["before"]["digest"] for change in run["sampling"].values()}
    held_out = {
        digest for name, digest in held_out_digests(run).items() if name.rpartition("/")[2] == "0"
    }
    return {row["digest"] for row in run["start_scores"]} | before | held_out


def own_sets(run: RunRecord) -> dict[str, str]:
    """Return the digest of each set of samples that the policy of a run answered, by its name.

    Names are `scores/SUITE/MODE/METRIC`, `at_k/SUITE` and `held_out/STEP`, the last of a benchmark
    `held_out/SUITE/STEP`, with a METRIC as of `metric_names`. Scores of several metrics of the same
    samples are one set, by the first.
    """
    sets: dict[str, str] = {}
    for row, metric in zip(run["scores"], metric_names(run["scores"]), strict=True):
        if row["digest"] not in sets.values():
            sets[f"scores/{row['benchmark']}/{row['mode']}/{metric}"] = row["digest"]
    for suite, change in run["sampling"].items():
        sets[f"at_k/{suite}"] = change["after"]["digest"]
    for name, digest in held_out_digests(run).items():
        if name.rpartition("/")[2] != "0":
            sets[f"held_out/{name}"] = digest
    return sets


def held_out_digests(run: RunRecord) -> dict[str, str]:
    """Return the digests of the answers sampled while training.

    Keys are the step; for a benchmark `<suite>/<step>`.
    """
    return run["train"].get("held_out", {})
