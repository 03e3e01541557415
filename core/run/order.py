"""A whole paper: every arm and seed that was asked for, then the verdicts and the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.claims import Claim
from core.models.load import locate
from core.paper import Paper
from core.paper.page import PREPARED
from core.records.places import check_writable, root
from core.records.record import Record, read_records, write_record
from core.records.runs_lock import working_in_runs
from core.settings.refusals import refuse, refuse_paper
from core.settings.resolve import Resolved, resolve
from core.settings.run_settings import TRIAL_SEED
from core.stages.chain import Chain
from core.stages.evaluate import modes_of
from core.stages.held_out import split_as_asked
from core.stages.record import run_chain, score_start
from core.stages.spread.jobs import run_jobs
from core.stages.spread.launch import check_installed
from core.stages.spread.pool import Unit, run_units
from core.stages.stage import Stage
from core.stages.tools import check_tools
from core.verdicts.judge import cannot_test
from core.verdicts.outcome import Outcome
from core.verdicts.trials import check_trials, compared_arms, trials_of, tuning_record
from core.verdicts.up_to_date import recorded_runs, recorded_trials
from core.verdicts.verdict_records import judged, verdicts_record
from eval.errors import BadValue
from eval.stats.seeds import Look
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was asked for on the command line; `cluster` and `job` as in `core.stages.spread.jobs`.

    With `looks` at the claims the runs stop at the first that leaves none undecided, and after
    `until` of them if that is given. With `fair` arms each that a claim needs has the best of the
    learning rates that are tried, and its own. With `recorded` what records tell of is not done
    again, wherever it was done.
    """

    paper: Paper
    scale: str = "cpu"
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    looks: tuple[Look, ...] = ()
    until: int | None = None
    fair: bool = False
    recorded: bool = False
    arguments: tuple[str, ...] = ()
    jobs: int = 1
    force: bool = False
    cluster: str | None = None
    job: Mapping[str, Any] = field(default_factory=dict[str, Any])


def run_order(order: Order) -> Outcome:
    """Run what is not done yet, judge the claims, and write all records."""
    refuse_paper(order.paper)
    arms = order.arms or (order.paper.main_arm,)
    runs = chains(order, arms, order.seeds)
    refuse([chain.resolved for chain in runs])
    for chain in runs:
        check_inputs(chain)
    tried = tried_arms(order, runs)
    check_outputs(order.paper.slug)
    for slug, why in cannot_test(order.paper, runs[0].resolved.run).items():
        say(f"claim {slug} will have no verdict: {why}")
    with working_in_runs():
        tunings = run_trials(order, tried)
        if order.looks:
            records = run_looks(order, arms, tunings)
        else:
            records = run_chains(order, chains(order, arms, order.seeds, tunings))
        claims = verdicts_record(order.paper, order.scale, records, order.looks, tunings)
        return Outcome(runs=records, tunings=tunings, claims=write_record(claims))


def chains(
    order: Order, arms: Sequence[str], seeds: Sequence[int], tunings: Sequence[Record] = ()
) -> list[Chain]:
    """The stages of every arm with every seed, at its own learning rate and at a better one."""
    better = {one["arm"]: one["best"] for one in tunings}
    resolved = [
        resolve(
            order.paper, arm=arm, scale=order.scale, arguments=order.arguments, factor=float(factor)
        )
        for arm in arms
        for factor in sorted({1, better.get(arm, 1)}, key=lambda factor: factor != 1)
    ]
    return [Chain(one, seed) for one in resolved for seed in seeds]


def tried_arms(order: Order, runs: Sequence[Chain]) -> list[Resolved]:
    """The arms of fair claims, once each.

    Raises:
        BadValue: learning rates are to be tried where no claim asks for it, or cannot be.
    """
    arms = {chain.resolved.arm: chain.resolved for chain in runs}
    if not order.fair:
        if "rate_factors" in runs[0].resolved.overrides:
            raise BadValue("rate_factors is given, and learning rates are tried with --claims only")
        return []
    tried = [arms[arm] for arm in arms if arm in compared_arms(order.paper)]
    check_trials(tried, order.seeds)
    return tried


def run_trials(order: Order, tried: Sequence[Resolved]) -> list[Record]:
    """The records of the trials of these arms, in processes of their own as runs are."""
    records = {arm.arm: recorded_trials(arm) if order.recorded else None for arm in tried}
    left = [arm for arm in tried if records[arm.arm] is None]
    trials = {arm.arm: [Chain(one, TRIAL_SEED) for one in trials_of(arm)] for arm in left}
    every = [chain for some in trials.values() for chain in some]
    units = [
        Unit(f"trial of {name_of(chain)}", (*one_run(order, chain), "--trial"))
        for chain in every
        if order.force or not finished(chain.training)
    ]
    force = not run_apart(order, [units], every) and order.force
    for arm in left:
        if trials[arm.arm]:
            records[arm.arm] = write_record(tuning_record(arm, trials[arm.arm], force=force))
    return [record for record in records.values() if record is not None]


def run_looks(order: Order, arms: Sequence[str], tunings: Sequence[Record]) -> list[Record]:
    """Run the seeds of one look after the other; only what an undecided claim needs goes on."""
    records: list[Record] = []
    done = 0
    for number, look in enumerate(order.looks[: order.until], 1):
        records += run_chains(order, chains(order, arms, order.seeds[done : look.seeds], tunings))
        done = look.seeds
        verdicts = judged(order.paper, records, order.looks[:number], tunings)["verdicts"]
        going = undecided(order.paper, verdicts)
        names = ", ".join(claim.slug for claim in going) or "none"
        say(f"look {number} of {len(order.looks)}, {look.seeds} seeds: undecided are {names}")
        needed = {arm for claim in going for arm in claim.arms or (order.paper.main_arm,)}
        arms = [arm for arm in arms if arm in needed]
        if not arms:
            break
    return records


def undecided(paper: Paper, verdicts: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """The claims that were judged over runs and not decided: more seeds may decide them."""
    open_ones = {v["id"] for v in verdicts if v["verdict"] == "undecided" and v["runs"]}
    return [claim for claim in paper.claims if claim.slug in open_ones]


def run_chains(order: Order, runs: Sequence[Chain]) -> list[Record]:
    """The records of these runs, in processes of their own where several are asked for."""
    told = recorded_runs(runs) if order.recorded else [None] * len(runs)
    left = [chain for chain, record in zip(runs, told, strict=True) if record is None]
    batches = (start_units(order, left), own_units(order, left))
    force = not run_apart(order, batches, left) and order.force
    if force:
        for chain in starting(left):
            score_start(chain, force=True)
    return [
        record or run_chain(chain, force=force) for chain, record in zip(runs, told, strict=True)
    ]


def run_apart(order: Order, batches: Sequence[Sequence[Unit]], runs: Sequence[Chain]) -> bool:
    """Run the units in processes of their own, if several or a cluster are asked for."""
    units = [unit for batch in batches for unit in batch]
    make_rows(runs if units else ())
    apart = order.cluster is not None or (order.jobs > 1 and len(units) > 1)
    if order.cluster is not None:
        queue(order, order.cluster, batches)
    elif apart:
        run_units(units, order.jobs)
    return apart


def make_rows(runs: Sequence[Chain]) -> None:
    """Make the rows of all runs, before any model loads; those of preparations come with them.

    Raises:
        MissingFile, DamagedFile: rows cannot be had or read.
        BadValue: they lack a column, or are fewer than somebody asks to hold out.
    """
    trained = [(chain.data, chain.resolved) for chain in runs if chain.train is not None]
    for data, one in {(d.key, r.run.heldout_problems): (d, r) for d, r in trained}.values():
        if not data.made:
            data.run()
            split_as_asked(one, data.folder, says=True)


def queue(order: Order, cluster: str, batches: Sequence[Sequence[Unit]]) -> None:
    """Run the units as jobs; what several of a batch read is made in the batches before it."""
    for units in batches:
        if units:
            run_jobs(units, cluster, order.job, order.jobs)


def check_inputs(chain: Chain) -> None:
    """Look up the model, the launch and what is reported to before anything starts.

    Raises:
        UnknownName: there is none of that name.
        MissingFile: a folder that is not there.
        BadValue: what a launch or a report needs is not installed.
        SandboxUnavailable: programs of answers cannot be run here.
    """
    run = chain.resolved.run
    for name in (run.model, *run.roles.values()):
        if not name.startswith(PREPARED):
            locate(name)
    for prepared in chain.prepared.values():
        check_inputs(prepared)
    check_installed(run)
    chain.resolved.preview().check_reporting()
    check_tools(modes_of(chain.resolved))


def check_outputs(slug: str) -> None:
    """Look before anything starts whether the records can be written, and those there be read.

    Raises:
        BadValue: a folder cannot be written.
        DamagedFile: a record is not what was written.
    """
    check_writable(root() / "runs")
    read_records(slug)


def starting(runs: Sequence[Chain]) -> list[Chain]:
    """One run for each starting model and draw of problems that these begin with."""
    seeds: dict[int, Chain] = {}
    found: dict[frozenset[str], Chain] = {}
    for chain in runs:
        seeds.setdefault(chain.seed, chain)
    for chain in seeds.values():
        found.setdefault(frozenset(stage.key for stage in chain.start_stages), chain)
    return list(found.values())


def start_units(order: Order, runs: Sequence[Chain]) -> list[Unit]:
    """The commands that score the starting models that are not scored yet."""
    return [
        Unit(f"start {chain.seed}", ("one", *asked(order, chain), "--seed", str(chain.seed)))
        for chain in starting(runs)
        if order.force or not finished(chain.start_stages)
    ]


def own_units(order: Order, runs: Sequence[Chain]) -> list[Unit]:
    """The commands of the arms and seeds that have not finished."""
    return [
        Unit(name_of(chain), one_run(order, chain))
        for chain in runs
        if order.force or not finished(chain.own_stages)
    ]


def one_run(order: Order, chain: Chain) -> tuple[str, ...]:
    """The command that runs one arm with one seed at one learning rate."""
    factor = ("--factor", repr(chain.resolved.factor)) if chain.resolved.factor != 1 else ()
    seed = ("--seed", str(chain.seed))
    return ("one", *asked(order, chain), "--arm", chain.resolved.arm, *seed, *factor)


def name_of(chain: Chain) -> str:
    """A run in the progress lines: its arm, seed, and the factor of its learning rate."""
    factor = chain.resolved.factor
    rate = f" at {factor:.3g} times its learning rate" if factor != 1 else ""
    return f"{chain.resolved.arm} {chain.seed}{rate}"


def asked(order: Order, chain: Chain) -> tuple[str, ...]:
    """What the commands of all units of an order are given."""
    force = ("--force",) if order.force else ()
    return (order.paper.slug, *chain.resolved.arguments, "--at", order.scale, *force)


def finished(stages: Iterable[Stage]) -> bool:
    """Whether nothing is left to do in these."""
    return all(stage.done for stage in stages)
