"""Carries out an order: checks the request, runs the work, and judges the claims."""

from dataclasses import replace

from core.records.record import read_records, write_record
from core.records.runs_lock import working_in_runs
from core.run.looks import Runs, run_work
from core.run.request import Order
from core.run.work import validate_order
from core.verdicts.outcome import Outcome
from core.verdicts.simulations import record_simulations, with_simulations
from core.verdicts.verdict_records import verdicts_record


def run_order(order: Order) -> Outcome:
    """Run what has not finished yet, judge the claims, and write all records.

    The steps are: request (`Order`), validated work (`Work`), runs (`Runs`), and verdicts
    (`Outcome`), of which `core.pages.render.render_outcome` makes the pages. If the claims
    are judged at looks, their simulations are recorded before the runs.

    Raises:
        ReproError: the order cannot be run, see `validate_order`, or a run failed.
    """
    work = validate_order(order)
    with working_in_runs():
        if order.looks:
            record_simulations(order.paper, force=order.force)
        paper = with_simulations(order.paper, read_records(order.paper.slug))
        order = replace(order, paper=paper)
        runs = run_work(replace(work, order=order))
        return judge_runs(order, runs)


def judge_runs(order: Order, runs: Runs) -> Outcome:
    """Judge the claims of the paper on these runs, and write the record of the verdicts."""
    claims = verdicts_record(
        order.paper, order.scale, runs.records, order.looks, runs.tunings, runs.missed
    )
    return Outcome(runs=runs.records, tunings=runs.tunings, claims=write_record(claims))
