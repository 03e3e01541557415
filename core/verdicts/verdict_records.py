"""Records of verdicts: made after runs, and again where the same runs now give others."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from core.paper import Paper
from core.records.agreement import agree
from core.records.fair import at_own_rates, fair, is_tuned
from core.records.record import (
    Record,
    current,
    new_record,
    read_records,
    standard,
    write_record,
)
from core.records.schema import ClaimsRecord, claims_of, runs_of, tunings_of
from core.settings.canonical import SHORT, as_text, canonical, digest_of
from core.verdicts.judge import judge
from eval.stats.seeds import LOOKS, Look

ROUNDING = 1e-9  # of differences between floats that a law holds equal


def verdicts_record(
    paper: Paper,
    scale: str,
    runs: Sequence[Record],
    looks: Sequence[Look] = (),
    tunings: Sequence[Record] = (),
) -> Record:
    """What these runs say of the paper's claims, at one look or at several; not written yet."""
    return new_record(
        "claims",
        paper=paper.slug,
        scale=scale,
        seeds=sorted({run["seed"] for run in runs}),
        looks=[[look.seeds, look.level] for look in looks],
        overrides=runs[0]["overrides"],
        specified=specified(paper),
        runs=[run["digest"] for run in runs],
        **({"tunings": [one["digest"] for one in tunings]} if tunings else {}),
        **judged(paper, runs, looks, tunings),
    )


def judged(
    paper: Paper, runs: Sequence[Record], looks: Sequence[Look], tunings: Sequence[Record]
) -> dict[str, list[dict[str, Any]]]:
    """The verdicts on the arms at their best rates; where one is not its own, on their own too."""
    best = [record for record in fair([*runs, *tunings]) if record["kind"] == "run"]
    found = {"verdicts": judge(paper, best, looks)}
    if any(map(is_tuned, runs)):
        found["own_rates"] = judge(paper, at_own_rates(runs), looks)
    return found


def without_runs(paper: Paper) -> list[dict[str, Any]]:
    """The verdicts that need no run; the others say which runs they lack.

    A law that holds by rounding alone differs by nothing here, whatever the machine rounds to.
    """
    found = judge(paper, ())
    for verdict in found:
        for name in ("effect", "low", "high"):
            if verdict[name] is not None and abs(verdict[name]) < ROUNDING:
                verdict[name] = 0.0
    return found


def specified(paper: Paper) -> dict[str, str]:
    """A digest of what each claim of a paper asserts and how it is tested."""
    return {claim.slug: digest_of(as_text(claim))[:SHORT] for claim in paper.claims}


def judge_again(paper: Paper) -> None:
    """Write shown verdicts again where their runs, or newer ones in their place, give others."""
    records = read_records(paper.slug)
    runs = {run["digest"]: run for run in runs_of(records)}
    tunings = {tuning["digest"]: tuning for tuning in tunings_of(records)}
    newer = {one["supersedes"]: one["digest"] for one in (*runs.values(), *tunings.values())}
    for scale in sorted({run["scale"] for run in runs.values()}):
        for claims in claims_of([*standard(records), *at_other_settings(records)], scale):
            named = [newest(digest, newer) for digest in judged_runs(claims)]
            if not named or not runs.keys() >= set(named):
                continue  # `repro check` says so
            tried = [newest(digest, newer) for digest in claims.get("tunings", [])]
            if not tunings.keys() >= set(tried):
                continue
            used = cast(list[Record], [runs[digest] for digest in named])
            chosen = cast(list[Record], [tunings[digest] for digest in tried])
            if other_verdicts(paper, claims, used, chosen):
                write_record(verdicts_record(paper, scale, used, looks_of(claims), chosen))


def at_other_settings(records: Iterable[Record]) -> list[Record]:
    """The newest verdicts over the seeds of a first look, at each choice of command-line settings.

    They stand beside those at the paper's settings: whether these hold elsewhere too.
    """
    chosen = {
        (record["scale"], as_text(record["overrides"])): record
        for record in current(records)
        if record["kind"] == "claims"
        and record["overrides"]
        and len(record["seeds"]) >= LOOKS[0].seeds
    }
    return list(chosen.values())


def looks_of(claims: ClaimsRecord) -> list[Look]:
    """The numbers of seeds at which the claims were judged, one after the other."""
    return [Look(int(seeds), level) for seeds, level in claims.get("looks", [])]


def newest(digest: str, newer: dict[str | None, str]) -> str:
    """The run that stands in the place of one now."""
    return newest(newer[digest], newer) if digest in newer else digest


def judged_runs(claims: ClaimsRecord) -> list[str]:
    """The digests of the runs that a record of verdicts is about."""
    used = [digest for row in claims["verdicts"] for digest in row["runs"]]
    return claims.get("runs") or list(dict.fromkeys(used))


def other_verdicts(
    paper: Paper, claims: ClaimsRecord, runs: Sequence[Record], tunings: Sequence[Record] = ()
) -> list[str]:
    """The claims on which a record says otherwise than its runs give now, each with its reason."""
    again = judged(paper, runs, looks_of(claims), tunings)
    if not agree(claims.get("own_rates"), canonical(again.get("own_rates"))):
        return ["those at the arms' own learning rates"]
    now = {row["id"]: canonical(row) for row in again["verdicts"]}
    then = {row["id"]: row for row in claims["verdicts"]}
    tests = specified(paper)
    old = claims.get("specified", tests)
    found = [
        f"{name}: the claim was another one then" if old.get(name) != tests.get(name) else name
        for name in dict.fromkeys([*now, *then, *old])
        if old.get(name) != tests.get(name) or not agree(then.get(name), now.get(name))
    ]
    return found or ([] if [*now] == [row["id"] for row in claims["verdicts"]] else ["their order"])
