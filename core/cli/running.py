"""`repro run`, `repro reproduce` and the hidden `repro one`."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.finding import announce
from core.cli.options import Arm, At, Force, Settings, Slug, takes
from core.cli.output import (
    print_json,
    print_markdown,
    print_text,
    print_verdicts,
    say_loading,
    tell,
)
from core.cli.run_options import Jobs, OrderOptions
from core.paper.registry import entries, find_paper
from core.records.places import from_here
from eval.errors import ReproError

if TYPE_CHECKING:
    from core.run.request import Order
    from core.verdicts.outcome import Outcome


@takes(OrderOptions)
def run(options: OrderOptions) -> int:
    """Run a paper: train, score, judge its claims, render its report."""
    one_run = not (options.claims or options.sweep or options.config)
    if options.paper is not None and one_run:
        scale, seed = options.at or "cpu", options.seed or 0
        announce(options.paper, options.arguments, scale, options.arm, seed)
    order = options.order()
    if options.sweep:
        return print_sweep(order, options.sweep, as_json=options.as_json)
    from core.run.order import run_order

    if options.push_to_hub is None:
        return print_outcome(order, run_order(order), as_json=options.as_json)
    return run_and_push(order, options.push_to_hub, as_json=options.as_json)


def run_and_push(order: "Order", address: str, *, as_json: bool) -> int:
    """Run an order, print its outcome and push its models to the hub; return the exit code."""
    from core.run.hub import check_hub, push_models
    from core.run.order import run_order
    from eval.terminal import say

    check_hub(order, address)
    outcome = run_order(order)
    code = print_outcome(order, outcome, as_json=as_json)
    for pushed in push_models(outcome.runs, address):
        say(f"pushed: {pushed}")
    return code


def print_outcome(order: "Order", outcome: "Outcome", *, as_json: bool) -> int:
    """Render and print the outcome of a run; return 1 if a claim was refuted, else 0."""
    from core.pages.render import render_outcome
    from core.run.likeness import likeness_lines

    compared = [*likeness_lines(order, outcome)]
    page = render_outcome(order.paper, outcome)
    if "wandb" in reported_to(order):
        from core.stages.watch.wandb_report import send_report

        claims, folder = outcome.claims, page.path.parent
        send_report(order.paper, order.scale, outcome.runs, claims, folder)
    if as_json:
        print_json(
            {
                "runs": [record["digest"] for record in outcome.runs],
                "claims": outcome.claims["digest"],
                "published": compared,
                "verdicts": outcome.verdicts,
                "report": str(page.path),
            }
        )
    else:
        print_markdown(page.table)
        print_text("\n".join(compared))
        print_verdicts(page.verdicts)
        print_text(f"report: {from_here(page.path)}")
    return 1 if outcome.has_refuted else 0


def reported_to(order: "Order") -> list[str]:
    """Return the services to which the trainings of an order report."""
    from core.settings.resolve import resolve

    arm, arguments = order.arms[0], order.arguments
    config = resolve(order.paper, arm=arm, scale=order.scale, arguments=arguments).preview()
    return [*(config.report_to or ())]


def print_sweep(order: "Order", sweep: list[str], *, as_json: bool) -> int:
    """Run a sweep and print one table of all its runs."""
    from core.pages.runs import runs_table
    from core.run.sweep import points, run_sweep
    from eval.tables import render

    records = run_sweep(order, points(sweep))
    if "wandb" in reported_to(order):
        from core.stages.watch.wandb_report import send_report

        send_report(order.paper, order.scale, records)
    if as_json:
        print_json(
            [{name: record[name] for name in ("digest", "arm", "seed")} for record in records]
        )
    else:
        print_markdown(render(runs_table(order.paper, records, order.scale), "md"))
    return 0


def reproduce(
    family: Annotated[
        str,
        typer.Argument(metavar="FAMILY", help="Such as grpo (with rloo and ppo), or preference."),
    ],
    at: At = "cpu",
    jobs: Jobs = None,
    looks: Annotated[
        int,
        typer.Option(min=1, max=3, help="Looks at undecided claims: over 3, 5 and 8 seeds."),
    ] = 3,
) -> int:
    """Run what is left of all papers of a family, judge their claims, and write one page of them.

    A paper whose records have verdicts on its claims as they are is only judged again, and what
    records tell of, with the settings of now, is not run again. All papers come to the first look
    at their claims before claims that more seeds may decide get them, for up to --looks looks.
    """
    say_loading()
    from core.families.table import listed_families
    from core.pages.groups import write_family
    from core.pages.render import render_all
    from core.run.reproduce import reproduce as reproduce_papers

    families = listed_families(family)
    papers = [paper for entry in entries().values() if (paper := entry.load()).family in families]
    count = jobs or (len(os.sched_getaffinity(0)) if at == "cpu" else 1)
    failures: dict[str, str] = {}
    problems: list[ReproError] = []
    for progress in reproduce_papers(papers, scale=at, jobs=count, looks=looks):
        if progress.failure:
            failures[progress.slug] = progress.failure
            continue
        failures.pop(progress.slug, None)
        _, errors = render_all((progress.slug,))
        problems += errors
    page = write_family(family, papers, at)
    print_text(f"{family} at {at}: {len(papers)} papers\npage: {from_here(page)}")
    for slug, reason in failures.items():
        print_text(f"{slug} is left: {reason}")
    return 1 if failures else tell(problems)


def one(
    paper: Slug,
    settings: Settings = None,
    at: At = "cpu",
    arm: Arm = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    factor: Annotated[float, typer.Option(help="Of its own learning rate.")] = 1.0,
    trial: Annotated[bool, typer.Option("--trial", help="Train alone, score nothing.")] = False,
    force: Force = False,
) -> None:
    """Run one arm with one seed, or, without an arm, score the starting model of the seed."""
    from core.records.runs_lock import working_in_runs
    from core.settings.resolve import resolve
    from core.spread.pool import die_with_parent
    from core.stages.chain import Chain
    from core.stages.record import run_chain, run_trial, score_start

    die_with_parent()
    resolved = resolve(
        find_paper(paper), arm=arm, scale=at, arguments=tuple(settings or ()), factor=factor
    )
    chain = Chain(resolved, seed)
    work = score_start if arm is None else run_trial if trial else run_chain
    with working_in_runs():
        work(chain, force=force)
