"""Records of verdicts: made after runs, and written again where the same runs now give others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

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
from core.records.verdict_row import VerdictRow
from core.settings.canonical import SHORT, as_text, canonical, digest_of
from core.verdicts.judge import judge
from core.verdicts.plan_digests import plan_changes, plan_digests
from core.verdicts.simulations import with_simulations
from eval.stats.seeds import LOOKS, Look

ROUNDING = 1e-9  # of differences between floats that a law holds equal


def verdicts_record(
    paper: Paper,
    scale: str,
    runs: Sequence[Record],
    looks: Sequence[Look] = (),
    tunings: Sequence[Record] = (),
    missed: Mapping[str, str] | None = None,
) -> Record:
    """Judge a paper's claims and return the record of the verdicts, which is not written yet.

    Args:
        paper: the paper.
        scale: at which the runs were made.
        runs: records of runs, at least one.
        looks: the numbers of seeds at which each claim is judged in turn; all seeds at once if
            empty.
        tunings: records of the learning-rate trials of the arms.
        missed: reasons of claims that miss a gate on the trial seed, as of `judge`.
    """
    return new_record(
        "claims",
        paper=paper.slug,
        scale=scale,
        seeds=sorted({run["seed"] for run in runs}),
        looks=[[look.seeds, look.level] for look in looks],
        overrides={name: value for run in runs for name, value in run["overrides"].items()},
        specified=claim_digests(paper),
        **({"planned": plans} if (plans := plan_digests(paper, runs)) else {}),
        runs=[run["digest"] for run in runs],
        **({"tunings": [tuning["digest"] for tuning in tunings]} if tunings else {}),
        **({"missed": dict(missed)} if missed else {}),
        **judge_records(paper, runs, looks, tunings, missed),
    )


def judge_records(
    paper: Paper,
    runs: Sequence[Record],
    looks: Sequence[Look],
    tunings: Sequence[Record],
    missed: Mapping[str, str] | None = None,
) -> dict[str, list[VerdictRow]]:
    """Return the verdicts on the arms at their best learning rates, as `verdicts`.

    If trials chose another rate for an arm, `own_rates` has the verdicts on the arms at their own
    rates beside them. The paper holds the values of its simulations, see `with_simulations`.
    """
    best = [record for record in fair([*runs, *tunings]) if record["kind"] == "run"]
    verdicts = {"verdicts": judge(paper, best, looks, missed)}
    if any(map(is_tuned, runs)):
        verdicts["own_rates"] = judge(paper, at_own_rates(runs), looks, missed)
    return verdicts


def without_runs(paper: Paper, records: Iterable[Record] = ()) -> list[VerdictRow]:
    """Return the verdicts on all claims without any run; claims that need runs stay undecided.

    Numbers of a law that are below `ROUNDING` are set to 0, so that they are the same on every
    machine.

    Args:
        paper: the paper.
        records: of the paper, with the values of its simulations.
    """
    verdicts = judge(with_simulations(paper, records), ())
    for verdict in verdicts:
        for name in ("effect", "low", "high"):
            if (number := verdict[name]) is not None and abs(number) < ROUNDING:
                verdict[name] = 0.0
    return verdicts


def claim_digests(paper: Paper) -> dict[str, str]:
    """Return a digest of what each claim asserts and how it is tested, by the claim's name."""
    return {claim.slug: digest_of(as_text(claim))[:SHORT] for claim in paper.claims}


def judge_again(paper: Paper) -> None:
    """Write a new record for each shown one whose runs, or their successors, give other verdicts.

    A record is left as it is if a run or a trial of it is missing, or if the plan of a claim has
    been changed since its runs, which `repro check` reports.
    """
    records = read_records(paper.slug)
    paper = with_simulations(paper, records)
    runs = {run["digest"]: cast(Record, run) for run in runs_of(records)}
    tunings = {tuning["digest"]: cast(Record, tuning) for tuning in tunings_of(records)}
    newer = {
        record["supersedes"]: record["digest"] for record in (*runs.values(), *tunings.values())
    }
    for claims in shown_verdicts(records, {run["scale"] for run in runs.values()}):
        used_runs = successors(judged_runs(claims), newer, runs)
        used_trials = successors(claims.get("tunings", []), newer, tunings)
        if not used_runs or used_trials is None:
            continue
        if plan_changes(paper, claims, used_runs):
            continue
        if changed_claims(paper, claims, used_runs, used_trials):
            scale, looks = claims["scale"], looks_of(claims)
            missed = claims.get("missed")
            write_record(verdicts_record(paper, scale, used_runs, looks, used_trials, missed))


def successors(
    digests: Iterable[str], newer: Mapping[str | None, str], records: Mapping[str, Record]
) -> list[Record] | None:
    """Return the records that stand in the place of others now; None if one is missing.

    Args:
        digests: of the records that may be superseded.
        newer: the digest of a record by that of the one it supersedes.
        records: all records by digest.
    """
    newest_digests = [newest(digest, newer) for digest in digests]
    if not records.keys() >= {*newest_digests}:
        return None
    return [records[digest] for digest in newest_digests]


def shown_verdicts(records: Sequence[Record], scales: Iterable[str]) -> Iterator[ClaimsRecord]:
    """Yield the verdict records that pages show at these scales, one scale after the other."""
    verdict_records = [*standard(records), *at_other_settings(records)]
    for scale in sorted(scales):
        yield from claims_of(verdict_records, scale)


def at_other_settings(records: Iterable[Record]) -> list[Record]:
    """Return the newest verdicts at each choice of command-line settings.

    They are shown beside those at the paper's settings. Verdicts over fewer seeds than the first
    look needs are left out.
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
    """Return the looks at which the claims of a record were judged, in order."""
    return [Look(int(seeds), level) for seeds, level in claims.get("looks", [])]


def newest(digest: str, newer: Mapping[str | None, str]) -> str:
    """Return the digest of the record that supersedes all others of one question.

    Args:
        digest: of any of these records.
        newer: the digest of a record by that of the one it supersedes.
    """
    return newest(newer[digest], newer) if digest in newer else digest


def judged_runs(claims: ClaimsRecord) -> list[str]:
    """Return the digests of the runs that a record of verdicts is about."""
    digests = [digest for row in claims["verdicts"] for digest in row["runs"]]
    return claims.get("runs") or list(dict.fromkeys(digests))


def changed_claims(
    paper: Paper, claims: ClaimsRecord, runs: Sequence[Record], tunings: Sequence[Record] = ()
) -> list[str]:
    """Return the claims whose recorded verdicts differ from what these runs give now.

    Args:
        paper: the paper as its module describes it now.
        claims: the record of verdicts.
        runs: the runs to judge again.
        tunings: the trials to judge again.

    Returns:
        The claims' names, with the reason if the claim itself has changed; or one line that says
        that the verdicts at the arms' own rates, or only the order of the claims, differ.
    """
    again = judge_records(paper, runs, looks_of(claims), tunings, claims.get("missed"))
    if not agree(claims.get("own_rates"), canonical(again.get("own_rates"))):
        return ["those at the arms' own learning rates"]
    now = {row["id"]: canonical(row) for row in again["verdicts"]}
    recorded = {row["id"]: row for row in claims["verdicts"]}
    digests = claim_digests(paper)
    old = claims.get("specified", digests)
    changed: list[str] = []
    for name in dict.fromkeys([*now, *recorded, *old]):
        if old.get(name) != digests.get(name):
            changed.append(f"{name}: the claim was another one then")
        elif not agree(recorded.get(name), now.get(name)):
            changed.append(name)
    if not changed and [*now] != [row["id"] for row in claims["verdicts"]]:
        return ["their order"]
    return changed
