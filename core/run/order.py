"""A whole paper: every arm and seed that was asked for, then the verdicts and the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.models.load import locate
from core.paper import Paper
from core.run.places import check_writable, reports, results, root
from core.run.records.record import Record, new_record, read_records, write_record
from core.run.records.verdicts import cannot_test, judge
from core.run.refusals import refuse
from core.run.resolve import resolve
from core.run.spread.jobs import run_jobs
from core.run.spread.launch import check_installed
from core.run.spread.pool import Unit, run_units
from core.run.stages.chain import Chain
from core.run.stages.record import run_chain, score_start
from core.run.stages.stage import Stage, say

START_UNIT = "start"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was asked for on the command line; `cluster` and `job` as in `core.run.spread.jobs`."""

    paper: Paper
    scale: str = "cpu"
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    arguments: tuple[str, ...] = ()
    jobs: int = 1
    force: bool = False
    cluster: str | None = None
    job: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The records of an order's runs and of their verdicts."""

    runs: list[Record]
    claims: Record

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The verdict on every claim of the paper."""
        return self.claims["verdicts"]

    @property
    def refuted(self) -> bool:
        """Whether any claim was refuted."""
        return any(verdict["verdict"] == "refuted" for verdict in self.verdicts)


def claimed_arms(paper: Paper) -> tuple[str, ...]:
    """The main arm, then every other arm that a claim needs."""
    named = [arm for claim in paper.claims for arm in claim.arms]
    return tuple(dict.fromkeys([paper.main_arm, *named]))


def run_order(order: Order) -> Outcome:
    """Run what is not done yet, judge the claims, and write all records."""
    runs = [
        Chain(resolve(order.paper, arm=arm, scale=order.scale, arguments=order.arguments), seed)
        for arm in order.arms or (order.paper.main_arm,)
        for seed in order.seeds
    ]
    first = runs[0]
    refuse([chain.resolved for chain in runs])
    for chain in runs:
        check_inputs(chain)
    check_outputs(order.paper.slug)
    for slug, why in cannot_test(order.paper, first.resolved.run).items():
        say(f"claim {slug} will have no verdict: {why}")
    units = pending(order, runs)
    apart = order.cluster is not None or (order.jobs > 1 and len(units) > 1)
    if order.cluster is not None:
        queue(order, order.cluster, units, runs)
    elif apart:
        run_units(units, order.jobs)
    force = order.force and not apart
    if force:
        for chain in {chain.seed: chain for chain in reversed(runs)}.values():
            score_start(chain, force=True)
    records = [run_chain(chain, force=force) for chain in runs]
    verdicts = judge(order.paper, records)
    claims = new_record(
        "claims",
        paper=order.paper.slug,
        scale=order.scale,
        seeds=list(order.seeds),
        overrides=records[0]["overrides"],
        verdicts=verdicts,
    )
    return Outcome(runs=records, claims=write_record(claims))


def queue(order: Order, cluster: str, units: list[Unit], runs: Sequence[Chain]) -> None:
    """Run the units as jobs; what several of them read is made before they start."""
    for chain in runs:
        if chain.train is not None:
            chain.train.data.run()
    for shared in (True, False):
        if some := [unit for unit in units if (unit.name == START_UNIT) == shared]:
            run_jobs(some, cluster, order.job, order.jobs)


def check_inputs(chain: Chain) -> None:
    """Look up the model and the launch before anything starts.

    Raises:
        UnknownName: there is none of that name.
        MissingFile: a folder that is not there.
        BadValue: what a launch needs is not installed.
    """
    if chain.before is None:
        locate(chain.resolved.run.model)
    else:
        check_inputs(chain.before)
    check_installed(chain.resolved.run)


def check_outputs(slug: str) -> None:
    """Look before anything starts whether the records can be written, and those there be read.

    Raises:
        BadValue: a folder cannot be written.
        DamagedFile: a record is not what was written.
    """
    check_writable(root() / "runs", results() / slug / "samples", reports() / slug)
    read_records(slug)


def pending(order: Order, runs: Sequence[Chain]) -> list[Unit]:
    """The commands of what has not finished; scoring the starting model is one of them."""
    same = ("--at", order.scale, *(["--force"] if order.force else []))
    units: list[Unit] = []
    for seed in order.seeds:
        starts = {s.key: s for chain in runs if chain.seed == seed for s in chain.start_stages}
        if order.force or not finished(starts.values()):
            command = ("one", order.paper.slug, *same, "--seed", str(seed), *order.arguments)
            units.append(Unit(START_UNIT, command))
    for chain in runs:
        if order.force or not finished(chain.own_stages):
            arm, seed = chain.resolved.arm, str(chain.seed)
            command = ("one", order.paper.slug, *same, "--arm", arm, "--seed", seed)
            units.append(Unit(f"{arm} {seed}", (*command, *order.arguments)))
    return units


def finished(stages: Iterable[Stage]) -> bool:
    """Whether nothing is left to do in these."""
    return all(stage.done for stage in stages)
