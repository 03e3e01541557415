"""Reproduces the papers of a family: runs what is left, and judges the claims of each paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.paper import Paper
from core.records.record import latest, read_records
from core.records.schema import claims_of, runs_of, tunings_of
from core.run.order import (
    Order,
    chains,
    check_outputs,
    finished,
    run_order,
    undecided,
)
from core.settings.refusals import refuse
from core.stages.chain import Chain
from core.verdicts.up_to_date import asked_problems, factor_of, recorded_runs
from core.verdicts.verdict_records import judge_again, judged_runs, specified
from eval.errors import ReproError
from eval.stats.seeds import LOOKS, Look
from eval.terminal import say


@dataclass(frozen=True)
class Reproduced:
    """A paper whose turn it was: judged on runs of now, or what hindered it."""

    slug: str
    failure: str = ""


def reproduce(
    papers: Sequence[Paper], *, scale: str = "cpu", jobs: int = 1, looks: int = 1
) -> Iterator[Reproduced]:
    """Run what is not done of these papers and judge their claims; yields each at its verdicts.

    All papers come to the first look at the claims before any comes to the next of so many `looks`,
    at which undecided ones have more seeds. At a look it is always the turn of the paper with the
    fewest runs left, where a training that several papers have is done once for all of them: so
    each hour brings the most verdicts. What is judged already is only judged again, runs and trials
    that records tell of are taken from there, and what was killed at any time goes on with the same
    call.
    """
    for paper in papers:
        if paper.not_run:
            say(f"{paper.slug} is not run: {paper.not_run}")
    papers = [paper for paper in papers if not paper.not_run]
    for number in range(1, looks + 1):
        left: list[Order] = []
        for paper in papers:
            try:
                left += to_run(paper, scale, jobs, number)
            except ReproError as error:
                yield Reproduced(paper.slug, str(error))
        say(f"look {number} of {len(LOOKS)}: {len(left)} papers are left")
        yield from run_orders(left)


def to_run(paper: Paper, scale: str, jobs: int, until: int) -> list[Order]:
    """What is left of a paper up to a look, if anything; what is judged is judged again."""
    if is_judged(paper, scale, LOOKS[until - 1]):
        judge_again(paper)
        return []
    order = whole_order(paper, scale, jobs, until)
    refuse([one.resolved for one in first_runs(order)])
    check_outputs(paper.slug)
    return [order]


def run_orders(orders: Sequence[Order]) -> Iterator[Reproduced]:
    """Each of these to its verdicts, that with the fewest runs left first."""
    waiting = list(orders)
    while waiting:
        order = min(waiting, key=unfinished)
        waiting.remove(order)
        left = unfinished(order)
        say(f"{order.paper.slug}: {left} runs of its first look, {len(waiting)} papers wait")
        try:
            run_order(order)
        except ReproError as error:
            yield Reproduced(order.paper.slug, str(error))
        else:
            yield Reproduced(order.paper.slug)


def whole_order(paper: Paper, scale: str, jobs: int, until: int) -> Order:
    """All that the claims of a paper need, up to a look at them."""
    return Order(
        paper=paper,
        scale=scale,
        arms=paper.claimed_arms,
        seeds=tuple(range(LOOKS[until - 1].seeds)),
        looks=LOOKS,
        until=until,
        fair=True,
        recorded=True,
        jobs=jobs,
    )


def is_judged(paper: Paper, scale: str, look: Look) -> bool:
    """Whether claims over runs have the verdicts of a look, on runs with the settings of now.

    Records say so alone, so that it holds of a clone in which nothing has run.
    """
    shown = latest(read_records(paper.slug))
    records, now = claims_of(shown, scale), specified(paper)
    then = records[-1].get("specified", {}) if records else {}
    if any(then.get(one.slug) != now[one.slug] for one in paper.claims if one.arms) or not records:
        return False
    verdicts = {row["id"]: row for row in records[-1]["verdicts"]}
    if any(
        len(verdicts[one.slug]["seeds"]) < look.seeds for one in undecided(paper, verdicts.values())
    ):
        return False
    named = set(judged_runs(records[-1]))
    runs = [run for run in runs_of(shown, scale) if run["digest"] in named]
    chosen = {(one["scale"], one["arm"]): one["best"] for one in tunings_of(shown, scale)}
    return (
        len(runs) == len(named)
        and {run["arm"] for run in runs} >= set(paper.claimed_arms)
        and not any(list(asked_problems(paper, run, factor_of(run, chosen))) for run in runs)
    )


def first_runs(order: Order) -> list[Chain]:
    """Every arm with the seeds of the first look, at its own learning rate."""
    return chains(order, order.arms, order.seeds[: order.looks[0].seeds])


def unfinished(order: Order) -> int:
    """How many of its first runs are not done."""
    runs = first_runs(order)
    return sum(
        record is None and not finished(chain.own_stages)
        for chain, record in zip(runs, recorded_runs(runs), strict=True)
    )
