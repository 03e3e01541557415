"""Claims as pages show them: the verdict with its evidence, arms, mechanism and world."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from core.claims import Claim, Untestable
from core.claims.comparison import RELATIONS
from core.families.worlds import SCALE, World, world_of_regime
from core.pages.mechanisms import STATISTICS, read_statistic
from core.pages.verdicts import as_measured, claim_result, measured_suites
from core.paper import Paper
from core.records.schema import ClaimsRecord, RunRecord
from core.records.verdict_row import VerdictRow
from eval.tables.report import ClaimResult

ACCURACY = STATISTICS[0]


def claim_rows(
    paper: Paper,
    verdicts: Sequence[VerdictRow],
    runs: Sequence[RunRecord],
    own_rates: Sequence[VerdictRow] = (),
    elsewhere: Sequence[ClaimsRecord] = (),
) -> tuple[ClaimResult, ...]:
    """Return the claims of a paper as its page shows them.

    Args:
        paper: the paper.
        verdicts: on its claims.
        runs: the newest of each arm and seed.
        own_rates: verdicts on the claims with arms at their own learning rates.
        elsewhere: records of verdicts at other settings.
    """
    claims, suites = {claim.slug: claim for claim in paper.claims}, measured_suites(runs)
    rates_by_claim = {row["id"]: row for row in own_rates}
    return tuple(
        replace(
            claim_result(verdict, rates_by_claim.get(verdict["id"]), elsewhere, suites),
            kind=kind_of(claim),
            mechanism=claim.mechanism if claim else "",
            world=", ".join(world.name for world in worlds_of(verdict, runs)),
            arms=", ".join(arm_texts(claim, verdict, runs)) if claim else "",
            gates=tuple(as_measured(text, suites) for text in gate_texts(verdict)),
        )
        for verdict in verdicts
        for claim in [claims.get(verdict["id"])]
    )


def worlds_of(verdict: VerdictRow, runs: Sequence[RunRecord]) -> list[World]:
    """Return the worlds of the runs that a verdict is about; empty beyond the scale of worlds."""
    judged_runs = [
        run for run in runs if run["digest"] in verdict["runs"] and run["scale"] == SCALE
    ]
    regimes = dict.fromkeys(
        run["config"]["regime"]["value"] if "regime" in run["config"] else None
        for run in judged_runs
    )
    return list({world.name: world for world in map(world_of_regime, regimes)}.values())


def limits_of(rows: Sequence[VerdictRow], runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return what each world cannot show in which a claim of these verdicts was tested."""
    return {world.name: world.cannot_show for row in rows for world in worlds_of(row, runs)}


def kind_of(claim: Claim | None) -> str:
    """Return what decides a claim: `runs`, a `law`, or `none`.

    A claim that the paper no longer has was judged by runs.
    """
    if claim is None:
        return "runs"
    if isinstance(claim.test, Untestable):
        return "none"
    return "law" if claim.test.kind == "exact" else "runs"


def arm_texts(claim: Claim, verdict: VerdictRow, runs: Sequence[RunRecord]) -> Iterator[str]:
    """Yield the compared arms with their accuracy at the start and the end of training."""
    for arm in claim.arms:
        seeds = [r for r in runs if r["arm"] == arm and r["seed"] in verdict["seeds"]]
        if not seeds:
            return
        change = read_statistic(ACCURACY, seeds, arm)
        if change and change.start is not None:
            yield f"{arm} {change.start:.1f} → {change.end:.1f} %"


def gate_texts(verdict: VerdictRow) -> Iterator[str]:
    """Yield each statistic of the mechanism with its value and its bound, and the seeds in it."""
    for gate in verdict.get("gates", ()):
        if gate["below"] == "inert":
            arm_text = f" of {gate['arm']}" if gate["arm"] else ""
            values, bound, relation = gate["values"], gate["bound"], gate["relation"]
            passing = sum(RELATIONS[relation](value, bound, 0.0) for value in values)
            yield (
                f"{gate['measure']}{arm_text}: {fmean(values):.3g}, expected {relation} {bound:g} "
                f"({passing} of {len(values)} seeds)"
            )
