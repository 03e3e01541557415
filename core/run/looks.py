"""Runs the work of an order: the trials of learning rates, then the seeds, look by look."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.claims import Claim
from core.paper import Paper
from core.records.record import Record, write_record
from core.run.gate_trials import arms_behind_gates, claims_behind_gates
from core.run.units import run_chains, run_in_processes, trial_units
from core.run.work import Trials, Work
from core.settings.resolve import at_factor
from core.stages.chain import Chain
from core.verdicts.trials import tuning_record
from core.verdicts.up_to_date import recorded_trials
from core.verdicts.verdict_records import judge_records
from eval.stats.stopping import WORTHWHILE
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The records of the runs of an order.

    Attributes:
        records: The records of the runs.
        tunings: The records of the trials that chose their learning rates.
        missed: The claims that were not run because they miss a gate on the trial seed, each with
            the reason.
    """

    records: list[Record]
    tunings: list[Record]
    missed: Mapping[str, str]


def run_work(work: Work) -> Runs:
    """Run the trials of an order, then its arms and seeds; return the records of both.

    Raises:
        MissedGates: no claim passes its gates on the trial seed; see `arms_behind_gates`.
    """
    tunings = run_trials(work)
    missed = claims_behind_gates(work, tunings)
    arms = arms_behind_gates(work.order, missed)
    return Runs(records=run_looks(work, tunings, arms), tunings=tunings, missed=missed)


def run_trials(work: Work) -> list[Record]:
    """Run the trials that are not recorded yet, and return the record of each arm's trials."""
    order = work.order
    recorded = {
        trials.resolved.arm: recorded_trials(trials.resolved)
        for trials in work.trials
        if order.recorded
    }
    pending = [t for t in work.trials if t.chains and recorded.get(t.resolved.arm) is None]
    chains = [chain for trials in pending for chain in trials.chains]
    force = not run_in_processes(order, [trial_units(order, chains)], chains) and order.force
    written = {t.resolved.arm: write_trials(t, force=force) for t in pending}
    records = {**recorded, **written}
    return [record for t in work.trials if (record := records.get(t.resolved.arm)) is not None]


def write_trials(trials: Trials, *, force: bool) -> Record:
    """Run the trials of one arm that are not done, write their record, and return it."""
    return write_record(tuning_record(trials.resolved, trials.chains, force=force))


def run_looks(work: Work, tunings: Sequence[Record], arms: tuple[str, ...]) -> list[Record]:
    """Run the seeds of one look after another, and return the records of all runs of some arms.

    After each look only the arms go on that a claim needs which later looks may decide, see
    `claims_to_continue`. Without looks all arms and seeds run at once.
    """
    order = work.order
    if not order.looks:
        return run_chains(order, select_chains(work, arms, tunings))
    records: list[Record] = []
    for number in range(1, len(order.looks[: order.until]) + 1):
        records += run_chains(order, select_chains(work, arms, tunings, number))
        verdicts = judge_records(order.paper, records, order.looks, tunings)["verdicts"]
        undecided = undecided_claims(order.paper, verdicts)
        claims = claims_to_continue(order.paper, verdicts)
        say(
            f"after look {number} of {len(order.looks)}, "
            f"{count_undecided(undecided)}{stopped_claims(undecided, claims)}"
        )
        needed = {arm for claim in claims for arm in claim.arms or (order.paper.main_arm,)}
        arms = tuple(arm for arm in arms if arm in needed)
        if not arms:
            break
    return records


def select_chains(
    work: Work, arms: Iterable[str], tunings: Sequence[Record], look: int | None = None
) -> list[Chain]:
    """Return the chains of these arms with the seeds that a look adds, or with all seeds.

    Those of an arm at its own learning rate come first. Those at its best rate follow if the trials
    chose another.

    Args:
        work: The work.
        arms: The names of the arms.
        tunings: The records of the trials.
        look: The number of the look, from 1; None for all seeds.
    """
    order = work.order

    def is_added(chain: Chain) -> bool:
        earlier = () if look is None else order.seeds_in(chain.resolved.world, look - 1)
        return (
            chain.seed in order.seeds_in(chain.resolved.world, look) and chain.seed not in earlier
        )

    best_factors = {tuning["arm"]: float(tuning["best"]) for tuning in tunings}
    selection: list[Chain] = []
    for arm in arms:
        chains = [c for c in work.chains if c.resolved.arm == arm and is_added(c)]
        selection += chains
        factor = best_factors.get(arm, 1.0)
        if chains and factor != 1:
            best = at_factor(chains[0].resolved, factor)
            selection += [Chain(best, chain.seed) for chain in chains]
    return selection


def undecided_claims(paper: Paper, verdicts: Iterable[Mapping[str, object]]) -> list[Claim]:
    """Return the claims that runs have not decided, which more seeds may decide.

    Args:
        paper: The paper of the claims.
        verdicts: The rows of a record of verdicts.
    """
    undecided = {row["id"] for row in verdicts if row["verdict"] == "undecided" and row["runs"]}
    return [claim for claim in paper.claims if claim.slug in undecided]


def claims_to_continue(paper: Paper, verdicts: Iterable[Mapping[str, object]]) -> list[Claim]:
    """Return the undecided claims that later looks decide with a probability of 10 % or more.

    Args:
        paper: The paper of the claims.
        verdicts: The rows of a record of verdicts.
    """
    return undecided_claims(paper, [row for row in verdicts if is_worth_seeds(row)])


def is_worth_seeds(verdict: Mapping[str, object]) -> bool:
    """Return whether later looks decide an undecided verdict with a probability of 10 % or more."""
    power = verdict.get("power")
    return isinstance(power, float | int) and power >= WORTHWHILE


def stopped_claims(undecided: Sequence[Claim], continued: Collection[Claim]) -> str:
    """Return which undecided claims more seeds would hardly decide, to end a sentence with."""
    stopped = [claim.slug for claim in undecided if claim not in continued]
    chance = f"less than {100 * WORTHWHILE:.0f} %"
    return f"; more seeds decide with a chance of {chance}: {', '.join(stopped)}" if stopped else ""


def count_undecided(claims: Sequence[Claim]) -> str:
    """Return how many claims are undecided and which, in words."""
    if not claims:
        return "no claim is undecided"
    count = "1 claim is" if len(claims) == 1 else f"{len(claims)} claims are"
    return f"{count} undecided: {', '.join(claim.slug for claim in claims)}"
