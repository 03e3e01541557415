"""`repro run`, `repro reproduce` and the hidden `repro one`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.finding import announce
from core.cli.options import (
    Arm,
    AsJson,
    At,
    Force,
    Launch,
    Processes,
    Seed,
    Settings,
    Slug,
    complete_paper,
    complete_scale,
)
from core.cli.output import (
    print_json,
    print_markdown,
    print_text,
    print_verdicts,
    say_loading,
    tell,
)
from core.paper.registry import entries, find_paper
from core.records.places import from_here
from eval.errors import BadValue, ReproError

if TYPE_CHECKING:
    from core.run.request import Order
    from core.settings.run_file import RunFile
    from core.verdicts.outcome import Outcome


Seeds = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="How many seeds; default 1, with --claims up to 8."),
]
Claims = Annotated[bool, typer.Option("--claims", help="Run every arm that a claim needs.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; default: the CPUs.")]
On = Annotated[
    str | None, typer.Option(help="Queue arms and seeds as jobs: slurm, or local to try.")
]
JobOptions = Annotated[
    list[str] | None,
    typer.Option(metavar="name=value", help="Of such a job, e.g. gpus_per_node=8."),
]
Named = Annotated[
    str | None,
    typer.Argument(
        metavar="PAPER",
        help="Slug, see `repro list`, or FILE.py.",
        autocompletion=complete_paper,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.yaml", help="A run that `repro plan --yaml` printed; what is given wins."
    ),
]
MaybeAt = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="SCALE",
        help="Scale: cpu (default), gpu or paper.",
        autocompletion=complete_scale,
    ),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(metavar="name=a,b,c", help="Run each value; of several, each combination."),
]

PushToHub = Annotated[
    str | None,
    typer.Option(
        metavar="OWNER/NAME", help="Send the trained models, each with its card, to the HF hub."
    ),
]


def asked_run(
    paper: str | None,
    settings: tuple[str, ...],
    at: str | None,
    arm: str | None,
    seed: int | None,
    config: Path | None,
    sweep: Sequence[str] = (),
) -> "RunFile":
    """Return the requested run: the given options, and otherwise those of the file.

    Raises:
        BadValue: no paper is named, or two different ones are.
    """
    if config is not None and paper is not None and "=" in paper:
        paper, settings = None, (paper, *settings)  # the file names the paper
    if paper is not None:
        find_paper(paper)  # before what is slow to import
    say_loading()
    from core.settings.run_file import RunFile, read_run_file

    if config is None:
        if paper is None:
            raise BadValue("no paper: expected PAPER, see `repro list`, or --config FILE.yaml")
        return RunFile(paper=paper, at=at or "cpu", arm=arm, seed=seed or 0, arguments=settings)
    file = read_run_file(config)
    if paper not in (None, file.paper):
        raise BadValue(f"PAPER {paper} and --config {config} of {file.paper}: leave one out")
    return RunFile(
        paper=file.paper,
        at=file.at if at is None else at,
        arm=file.arm if arm is None else arm,
        seed=file.seed if seed is None else seed,
        arguments=(*file.without([*settings, *sweep]).arguments, *settings),
    )


def run(
    paper: Named = None,
    settings: Settings = None,
    at: MaybeAt = None,
    arm: Arm = None,
    seed: Seed = None,
    seeds: Seeds = None,
    claims: Claims = False,
    jobs: Jobs = None,
    launch: Launch = None,
    processes: Processes = None,
    on: On = None,
    job: JobOptions = None,
    config: Config = None,
    sweep: Sweep = None,
    push_to_hub: PushToHub = None,
    force: Force = False,
    as_json: AsJson = False,
) -> int:
    """Run a paper: train, score, judge its claims, render its report."""
    arguments = with_launch(settings, launch, processes)
    if paper is not None and not (claims or sweep or config):
        announce(paper, arguments, at or "cpu", arm, seed or 0)
    requested = asked_run(paper, arguments, at, arm, seed, config, sweep or ())
    resolved_paper = find_paper(requested.paper)
    from core.run.order import run_order
    from core.run.request import Order
    from core.spread.jobs import read_options
    from eval.stats.seeds import LOOKS

    check_exclusive(requested.arm, sweep, push_to_hub, claims=claims)
    looks = LOOKS if claims and seeds is None else ()
    count = looks[-1].seeds if looks else seeds or 1
    launched = any(text.startswith("launch=") for text in requested.arguments)
    arms = resolved_paper.claimed_arms if claims else (requested.arm or resolved_paper.main_arm,)
    order = Order(
        paper=resolved_paper,
        scale=requested.at,
        arms=arms,
        seeds=tuple(range(requested.seed, requested.seed + count)),
        looks=looks,
        fair=claims,
        arguments=requested.arguments,
        jobs=jobs or (1 if launched or requested.at != "cpu" else len(os.sched_getaffinity(0))),
        force=force,
        cluster=on,
        job=read_options(job or ()),
    )
    if sweep:
        return print_sweep(order, sweep, as_json=as_json)
    if push_to_hub is None:
        return print_outcome(order, run_order(order), as_json=as_json)
    return run_and_push(order, push_to_hub, as_json=as_json)


def check_exclusive(
    arm: str | None, sweep: list[str] | None, push_to_hub: str | None, *, claims: bool
) -> None:
    """Raise `BadValue` for options of `repro run` that exclude each other."""
    for name, value in {"arm": arm, "sweep": sweep}.items():
        if claims and value is not None:
            raise BadValue(
                f"--{name} {value} with --claims, which runs every arm it needs: leave one out"
            )
    if push_to_hub is not None and (claims or sweep):
        raise BadValue(
            "--push-to-hub with --claims or --sweep, which train many models: give it to the "
            "command of the run that you choose"
        )


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


def with_launch(
    settings: list[str] | None, launch: str | None, processes: int | None
) -> tuple[str, ...]:
    """Return the settings with those of the launch."""
    launch_settings = {"launch": launch, "processes": processes}
    return (*(settings or ()), *(f"{n}={v}" for n, v in launch_settings.items() if v is not None))


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
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="E.g. grpo, with rloo and ppo.")],
    at: At = "cpu",
    jobs: Jobs = None,
    looks: Annotated[
        int,
        typer.Option(min=1, max=3, help="Looks at undecided claims: over 3, 5 and 8 seeds."),
    ] = 1,
) -> int:
    """Run what is left of all papers of a family, judge their claims, and write one page of them.

    A paper whose records have verdicts on its claims as they are is only judged again, and what
    records tell of, with the settings of now, is not run again. All papers come to the first look
    at their claims before undecided ones are given more seeds, for which --looks asks.
    """
    say_loading()
    from core.families.table import listed_families
    from core.pages.families import write_family
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
