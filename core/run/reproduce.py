"""Reproduces the papers of a family: what is left to run, shared by papers first, then verdicts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.paper import Paper
from core.run.order import (
    Order,
    chains,
    check_outputs,
    claimed_arms,
    finished,
    name_of,
    one_run,
    run_order,
    start_units,
)
from core.run.records.asked import asked_problems, factor_of
from core.run.records.judged import judge_again, judged_runs, specified
from core.run.records.record import latest, read_records
from core.run.records.schema import claims_of, runs_of, tunings_of
from core.run.refusals import refuse
from core.run.spread.pool import Unit, run_units
from core.run.stages.chain import Chain
from core.run.stages.stage import say
from eval.errors import ReproError
from eval.stats.seeds import LOOKS


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What came of the papers: those that were run and judged now, and why others were not."""

    judged: list[str]
    failed: dict[str, str]


def reproduce(papers: Sequence[Paper], *, scale: str = "cpu", jobs: int = 1) -> Reproduced:
    """Run what is not done of these papers and judge their claims; the others are judged again.

    What can be killed at any time goes on with the same call.
    """
    failed: dict[str, str] = {}
    left: list[Order] = []
    for paper in papers:
        try:
            if is_judged(paper, scale):
                judge_again(paper)
                continue
            order = whole_order(paper, scale, jobs)
            refuse([one.resolved for one in first_runs(order)])
            check_outputs(paper.slug)
            left.append(order)
        except ReproError as error:
            failed[paper.slug] = str(error)
    units = shared_first(left)
    say(
        f"{len(papers) - len(left) - len(failed)} papers are done, {len(left)} are left: "
        f"{', '.join(order.paper.slug for order in left) or 'none'}"
    )
    say(f"{len(units)} runs of their first look are left")
    run_units(units, jobs, failed=lambda error: say(f"failed, to be tried again: {error}"))
    for order in left:
        try:
            run_order(order)
        except ReproError as error:
            failed[order.paper.slug] = str(error)
    judged = [order.paper.slug for order in left if order.paper.slug not in failed]
    return Reproduced(judged=judged, failed=failed)


def whole_order(paper: Paper, scale: str, jobs: int) -> Order:
    """All that the claims of a paper need, look by look."""
    return Order(
        paper=paper,
        scale=scale,
        arms=claimed_arms(paper),
        seeds=tuple(range(LOOKS[-1].seeds)),
        looks=LOOKS,
        fair=True,
        jobs=jobs,
    )


def is_judged(paper: Paper, scale: str) -> bool:
    """Whether claims over runs have verdicts as they are now, on runs with the settings of now.

    Records say so alone, so that it holds of a clone in which nothing has run.
    """
    shown = latest(read_records(paper.slug))
    verdicts, now = claims_of(shown, scale), specified(paper)
    then = verdicts[-1].get("specified", {}) if verdicts else {}
    if any(then.get(one.slug) != now[one.slug] for one in paper.claims if one.arms) or not verdicts:
        return False
    named = set(judged_runs(verdicts[-1]))
    runs = [run for run in runs_of(shown, scale) if run["digest"] in named]
    chosen = {(one["scale"], one["arm"]): one["best"] for one in tunings_of(shown, scale)}
    return (
        len(runs) == len(named)
        and {run["arm"] for run in runs} >= set(claimed_arms(paper))
        and not any(list(asked_problems(paper, run, factor_of(run, chosen))) for run in runs)
    )


def first_runs(order: Order) -> list[Chain]:
    """Every arm with the seeds of the first look."""
    return chains(order, order.arms, order.seeds[: order.looks[0].seeds])


def shared_first(orders: Iterable[Order]) -> list[Unit]:
    """The commands of the first looks: starting models, then the arms that serve most papers.

    Runs of several papers that come to one training have it once: the first to come makes it, the
    others find it done.
    """
    runs = [(order, chain) for order in orders for chain in first_runs(order)]
    serving: defaultdict[str, set[str]] = defaultdict(set)
    starts: dict[frozenset[str], Unit] = {}
    for order, chain in runs:
        serving[chain.policy.key].add(order.paper.slug)
        model = frozenset(stage.key for stage in chain.start_stages)
        for unit in start_units(order, [chain]):
            starts.setdefault(model, Unit(f"{order.paper.slug} {unit.name}", unit.arguments))
    left = [(order, chain) for order, chain in runs if not finished(chain.own_stages)]
    left.sort(key=lambda run: -len(serving[run[1].policy.key]))  # stable: else as papers come
    own = [Unit(f"{o.paper.slug} {name_of(c)}", one_run(o, c)) for o, c in left]
    return [*starts.values(), *own]
