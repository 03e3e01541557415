"""Reproduces the papers of a family: runs what is missing and judges the claims of each paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.claims import Claim
from core.paper import Paper
from core.records.record import latest, read_records
from core.records.schema import ClaimsRecord, Record, claims_of, runs_of, tunings_of
from core.run.looks import claims_to_continue
from core.run.order import run_order
from core.run.request import Order
from core.run.units import all_done
from core.run.work import check_records, make_chains
from core.settings.refusals import refuse
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.verdicts.up_to_date import asked_problems, factor_of, recorded_runs
from core.verdicts.verdict_records import claim_digests, judge_again, judged_runs
from eval.errors import ReproError
from eval.stats.seeds import LOOKS
from eval.terminal import say


@dataclass(frozen=True)
class Reproduced:
    """A paper that was judged on present runs, or the text of its failure."""

    slug: str
    failure: str = ""


def reproduce(
    papers: Sequence[Paper], *, scale: str = "cpu", jobs: int = 1, looks: int = len(LOOKS)
) -> Iterator[Reproduced]:
    """Run what is missing of these papers, judge their claims, and yield each judged paper.

    All papers come to the first look at their claims before any paper comes to the next. At a look,
    the paper with the fewest missing runs is next; a training that several papers share is run
    once. A judged paper is only judged again. Records of runs and trials are used where they are up
    to date, and a killed call continues if it is repeated. A paper that fails is yielded with its
    failure at that look, and the others go on.

    Args:
        papers: The papers; those that are declared not to run are skipped with a message.
        scale: The name of the scale.
        jobs: The number of processes.
        looks: The number of looks; at each one, claims that more seeds may decide get more.
    """
    for paper in papers:
        if paper.not_run:
            say(f"{paper.slug} is not run: {paper.not_run}")
    papers = [paper for paper in papers if not paper.not_run]
    for number in range(1, looks + 1):
        orders: list[Order] = []
        for paper in papers:
            try:
                orders += to_run(paper, scale, jobs, number)
            except ReproError as error:
                yield Reproduced(paper.slug, str(error))
        say(f"look {number} of {len(LOOKS)}: {len(orders)} papers are left")
        yield from run_orders(orders)


def to_run(paper: Paper, scale: str, jobs: int, until: int) -> list[Order]:
    """Return the order of a paper up to a look; a judged paper is judged again and has none.

    A paper whose claims compare no runs has none either.
    """
    if not any(claim.arms for claim in paper.claims):
        return []
    if is_judged(paper, scale, until):
        judge_again(paper)
        return []
    order = whole_order(paper, scale, jobs, until)
    refuse([chain.resolved for chain in first_runs(order)])
    check_records(paper.slug)
    return [order]


def run_orders(orders: Sequence[Order]) -> Iterator[Reproduced]:
    """Run orders, those with the fewest missing runs first, and yield the paper of each."""
    waiting = list(orders)
    while waiting:
        order = min(waiting, key=count_missing)
        waiting.remove(order)
        missing = count_missing(order)
        say(f"{order.paper.slug}: {missing} runs of its first look, {len(waiting)} papers wait")
        try:
            run_order(order)
        except ReproError as error:
            yield Reproduced(order.paper.slug, str(error))
        else:
            yield Reproduced(order.paper.slug)


def whole_order(paper: Paper, scale: str, jobs: int, until: int) -> Order:
    """Return the order of everything that the claims of a paper need up to a look."""
    return Order(
        paper=paper,
        scale=scale,
        arms=paper.claimed_arms(scale),
        seeds=tuple(range(LOOKS[until - 1].seeds)),
        looks=LOOKS,
        until=until,
        fair=True,
        recorded=True,
        jobs=jobs,
    )


def is_judged(paper: Paper, scale: str, look: int) -> bool:
    """Return whether records hold the verdicts of a look, counted from 1, on present settings.

    Only records are read, and no local stages, so the answer is the same in a fresh clone.
    """
    records = latest(read_records(paper.slug))
    claims_records = claims_of(records, scale)
    if not claims_records:
        return False
    claims = claims_records[-1]
    return (
        asserts_the_same(paper, claims)
        and has_seeds(paper, scale, claims, look)
        and has_present_runs(paper, scale, records, claims)
    )


def asserts_the_same(paper: Paper, claims: ClaimsRecord) -> bool:
    """Return whether a record of verdicts judged the present claims about arms."""
    then, now = claims.get("specified", {}), claim_digests(paper)
    return all(then.get(claim.slug) == now[claim.slug] for claim in paper.claims if claim.arms)


def has_seeds(paper: Paper, scale: str, claims: ClaimsRecord, look: int) -> bool:
    """Return whether each claim that more seeds may decide was judged on the seeds of a look."""
    verdicts = {row["id"]: row for row in claims["verdicts"]}
    return all(
        len(verdicts[claim.slug]["seeds"]) >= seeds_of_look(paper, scale, claim, look)
        for claim in claims_to_continue(paper, verdicts.values())
    )


def seeds_of_look(paper: Paper, scale: str, claim: Claim, look: int) -> int:
    """Return the number of seeds at a look of the world that a claim is tested in."""
    arm = claim.arms[0] if claim.arms else paper.main_arm
    return resolve(paper, arm=arm, scale=scale).world.looks[look - 1].seeds


def has_present_runs(
    paper: Paper, scale: str, records: Sequence[Record], claims: ClaimsRecord
) -> bool:
    """Return whether the judged runs are all there, with present settings.

    They are those of all claimed arms but the ones that only claims compare which missed a gate on
    the trial seed.
    """
    digests = judged_runs(claims)
    needed = paper.claimed_arms(scale, without=claims.get("missed", ()))
    runs = [run for run in runs_of(records, scale) if run["digest"] in digests]
    best_factors = {
        (tuning["scale"], tuning["arm"]): tuning["best"] for tuning in tunings_of(records, scale)
    }
    return (
        len(runs) == len({*digests})
        and {run["arm"] for run in runs} >= {*needed}
        and not any(list(asked_problems(paper, run, factor_of(run, best_factors))) for run in runs)
    )


def first_runs(order: Order) -> list[Chain]:
    """Return the chains of every arm with the seeds of the first look, at its own learning rate."""
    return make_chains(order, order.arms, looks=1)


def count_missing(order: Order) -> int:
    """Return the number of runs of an order's first look that are missing."""
    chains = first_runs(order)
    return sum(
        record is None and not all_done(chain.own_stages)
        for chain, record in zip(chains, recorded_runs(chains), strict=True)
    )
