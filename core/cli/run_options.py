"""The options of `repro run` and `repro plan`, and the run that they request."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import (
    Arm,
    AsJson,
    Force,
    Launch,
    Processes,
    Seed,
    Settings,
    complete_paper,
    complete_scale,
)
from core.cli.output import say_loading
from core.paper.registry import find_paper
from eval.errors import BadValue

if TYPE_CHECKING:  # slow to import
    from core.run.request import Order
    from core.settings.run_file import RunFile

Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; default: the CPUs.")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that choose a run."""

    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER",
            help="Slug, see `repro list`, or FILE.py.",
            autocompletion=complete_paper,
        ),
    ] = None
    settings: Settings = None
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="SCALE",
            help="Scale: cpu (default), gpu or paper.",
            autocompletion=complete_scale,
        ),
    ] = None
    arm: Arm = None
    seed: Seed = None
    launch: Launch = None
    processes: Processes = None
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.yaml", help="A run that `repro plan --yaml` printed; what is given wins."
        ),
    ] = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The settings with those of the launch, each as `name=value`."""
        launch = {"launch": self.launch, "processes": self.processes}
        launch_settings = (f"{name}={value}" for name, value in launch.items() if value is not None)
        return (*(self.settings or ()), *launch_settings)

    def requested(self, sweep: Sequence[str] = ()) -> "RunFile":
        """Return the requested run: the given options, and otherwise those of the file.

        Args:
            sweep: Settings with several values, which replace those of the file.

        Raises:
            BadValue: no paper is named, or two different ones are.
        """
        paper, arguments = self.paper, self.arguments
        if self.config is not None and paper is not None and "=" in paper:
            paper, arguments = None, (paper, *arguments)  # the file names the paper
        if paper is not None:
            find_paper(paper)  # before what is slow to import
        self.load_configs()
        file = self.read_file(paper)
        options = {"at": self.at, "arm": self.arm, "seed": self.seed}
        return replace(
            file,
            arguments=(*file.without([*arguments, *sweep]).arguments, *arguments),
            **{name: value for name, value in options.items() if value is not None},
        )

    def load_configs(self) -> None:
        """Report that the run loads torch."""
        say_loading()

    def read_file(self, paper: str | None) -> "RunFile":
        """Return the run of the file; without a file, the paper's run with default options."""
        from core.settings.run_file import RunFile, read_run_file

        if self.config is None:
            if paper is None:
                raise BadValue("no paper: expected PAPER, see `repro list`, or --config FILE.yaml")
            return RunFile(paper=paper)
        file = read_run_file(self.config)
        if paper not in (None, file.paper):
            raise BadValue(
                f"PAPER {paper} and --config {self.config} of {file.paper}: leave one out"
            )
        return file


@dataclass(frozen=True, kw_only=True)
class OrderOptions(RunOptions):
    """Options of `repro run`."""

    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="How many seeds; default 1, with --claims up to 8."),
    ] = None
    claims: Annotated[bool, typer.Option("--claims", help="Run every arm that a claim needs.")] = (
        False
    )
    jobs: Jobs = None
    on: Annotated[
        str | None, typer.Option(help="Queue arms and seeds as jobs: slurm, or local to try.")
    ] = None
    job: Annotated[
        list[str] | None,
        typer.Option(metavar="name=value", help="Of such a job, e.g. gpus_per_node=8."),
    ] = None
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="name=a,b,c", help="Run each value; of several, each combination."),
    ] = None
    push_to_hub: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="Send the trained models, each with its card, to the HF hub."
        ),
    ] = None
    force: Force = False
    as_json: AsJson = False

    def order(self) -> "Order":
        """Return the order of the requested runs.

        Raises:
            BadValue: options exclude each other, or no paper is named.
        """
        requested = self.requested(self.sweep or ())
        paper = find_paper(requested.paper)
        from core.run.request import Order
        from core.spread.jobs import read_options
        from eval.stats.seeds import LOOKS

        self.check_exclusive(requested.arm)
        looks = LOOKS if self.claims and self.seeds is None else ()
        count = looks[-1].seeds if looks else self.seeds or 1
        main = (requested.arm or paper.main_arm,)
        return Order(
            paper=paper,
            scale=requested.at,
            arms=paper.claimed_arms(requested.at) if self.claims else main,
            seeds=tuple(range(requested.seed, requested.seed + count)),
            looks=looks,
            fair=self.claims,
            arguments=requested.arguments,
            jobs=self.jobs or default_jobs(requested),
            force=self.force,
            cluster=self.on,
            job=read_options(self.job or ()),
        )

    def check_exclusive(self, arm: str | None) -> None:
        """Raise `BadValue` for options that exclude each other; `arm` is that of the run."""
        for name, value in {"arm": arm, "sweep": self.sweep}.items():
            if self.claims and value is not None:
                raise BadValue(
                    f"--{name} {value} with --claims, which runs every arm it needs: leave one out"
                )
        if self.push_to_hub is not None and (self.claims or self.sweep):
            raise BadValue(
                "--push-to-hub with --claims or --sweep, which train many models: give it to the "
                "command of the run that you choose"
            )


def default_jobs(run: "RunFile") -> int:
    """Return the number of processes at a time: 1 for launches and off the CPU, else the CPUs."""
    is_launched = any(text.startswith("launch=") for text in run.arguments)
    return 1 if is_launched or run.at != "cpu" else len(os.sched_getaffinity(0))
