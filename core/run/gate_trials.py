"""Trials of gates: one seed that is never judged shows whether the mechanism of a claim acts.

They are made of the claims that declare `acts`, before any judged seed runs.
"""

from collections.abc import Iterable, Mapping, Sequence

from core.claims import Claim, MissingMeasure
from core.claims.gates import Gate
from core.records.record import Record
from core.run.request import Order
from core.run.units import run_in_processes, trial_units
from core.run.work import Work
from core.settings.resolve import at_factor
from core.stages.chain import Chain
from core.stages.record import trial_record
from core.verdicts.verdict_rows import ON_TRIAL_SEED
from eval.errors import ReproError
from eval.terminal import say

SCORED = ("score", "samples")  # what a trial need not have


class MissedGates(ReproError):
    """No claim of an order passes its gates on the trial seed."""

    exit_code = 1


def arms_behind_gates(order: Order, missed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arms that the order still runs after the trials of gates.

    An arm is left out if only claims that miss a gate compare it.

    Args:
        order: The order.
        missed: The claims that miss a gate, as `claims_behind_gates` returns them.

    Raises:
        MissedGates: no claim about runs is left.
    """
    if not missed:
        return order.arm_names
    if not any(claim.arms and claim.slug not in missed for claim in order.paper.claims):
        reasons = "; ".join(map(": ".join, missed.items()))
        raise MissedGates(f"no claim passes its gates on the trial seed, nothing runs: {reasons}")
    needed = order.paper.claimed_arms(order.scale, without=missed)
    return tuple(arm for arm in order.arm_names if arm in needed)


def claims_behind_gates(work: Work, tunings: Sequence[Record]) -> dict[str, str]:
    """Return which claims miss a gate on the trial seed, each with the reason, and print them.

    Orders without `--claims` have no trials, and the result is empty.
    """
    if not work.order.fair:
        return {}
    declared = [c for c in work.order.paper.claims if c.arms and c.act_comparisons]
    records = run_gate_trials(work, declared, tunings)
    missed = {claim.slug: why for claim in declared if (why := missed_gates(claim, records))}
    for slug, reason in missed.items():
        say(f"claim {slug} is not run: {ON_TRIAL_SEED}{reason}")
    return missed


def run_gate_trials(
    work: Work, claims: Iterable[Claim], tunings: Sequence[Record]
) -> dict[str, Record]:
    """Train each arm of these claims with the trial seed of its world; return a record by arm.

    An arm has the learning rate that its trials chose.
    """
    arms = {arm for claim in claims for arm in claim.arms}
    factors = {tuning["arm"]: float(tuning["best"]) for tuning in tunings}
    resolved = {c.resolved.arm: c.resolved for c in work.chains if c.resolved.arm in arms}
    chains = [
        Chain(at_factor(arm_run, factors.get(arm, 1.0)), arm_run.world.trial_seed)
        for arm, arm_run in resolved.items()
    ]
    units = trial_units(work.order, chains)
    force = not run_in_processes(work.order, [units], chains) and work.order.force
    return {chain.resolved.arm: trial_record(chain, force=force) for chain in chains}


def missed_gates(claim: Claim, records: Mapping[str, Record]) -> str:
    """Return by which numbers a claim misses its gates on the trial seed; empty if it passes.

    Gates that name scores are left to the judged runs, as most trials are not scored.
    """
    gates = [gate for gate in claim.gates if not reads_scores(gate)]
    try:
        checked = [gate.check([records]) for gate in gates]
    except MissingMeasure as error:
        return f"a gate cannot be read: {error.args[0]}"
    return "; ".join(f"{gate.gate.below}: {gate.reason}" for gate in checked if not gate.passes)


def reads_scores(gate: Gate) -> bool:
    """Return whether a gate reads scores or samples of benchmarks."""
    return any(need.kind in SCORED for _, need in gate.test.needs)
