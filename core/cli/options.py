"""Options that several commands share, and commands whose options are the fields of a class."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from core.families.profiles import SCALES
from core.paper.registry import entries, find_paper
from core.settings.run_settings import LARGEST_SEED
from eval.errors import ReproError


def complete_paper(incomplete: str) -> list[str]:
    """Return the papers that complete a partial slug in the shell."""
    return [slug for slug in entries() if slug.startswith(incomplete)]


def complete_scale(incomplete: str) -> list[str]:
    """Return the scales that complete a partial name in the shell."""
    return [scale for scale in SCALES if scale.startswith(incomplete)]


def complete_arm(context: typer.Context, incomplete: str) -> list[str]:
    """Return the arms of the paper on the command line that complete a partial name."""
    typed = [context.params.get("paper"), *context.args]  # the latter before an unfinished option
    try:
        paper = find_paper(next(filter(None, typed), ""))
    except ReproError:
        return []
    return [arm for arm in paper.arms if arm.startswith(incomplete)]


Slug = Annotated[
    str,
    typer.Argument(metavar="PAPER", help="Slug, see `repro list`.", autocompletion=complete_paper),
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="name=value", help="Settings that win over all others."),
]
At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="SCALE",
        help="Scale: cpu, gpu or paper.",
        autocompletion=complete_scale,
    ),
]
Arm = Annotated[
    str | None,
    typer.Option(help="One arm; default: the paper's own method.", autocompletion=complete_arm),
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=LARGEST_SEED, help="The first seed; default: 0.")
]
Force = Annotated[bool, typer.Option("--force", help="Do finished stages again.")]
Launch = Annotated[
    str | None, typer.Option(help="Train on several processes: ddp, fsdp2, zero1, zero2 or zero3.")
]
Processes = Annotated[int | None, typer.Option(min=2, help="How many, over all machines.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder of benchmarks; default: REPRO_DATA, else the hub.")
]
Mode = Annotated[
    str,
    typer.Option(
        help="cot, direct (the answer is begun), tir (programs run), untooled (they are not run), "
        "or for base models few-shot, pal (programs)."
    ),
]
Reported = Annotated[
    str | None,
    typer.Option(metavar="NAME=PERCENT,...", help="Printed scores to compare with: gsm8k=88.2"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, alone on standard output.")]

Options = TypeVar("Options")


def takes(
    options: Callable[..., Options],
) -> Callable[[Callable[[Options], int | None]], Callable[..., int | None]]:
    """Make the fields of a class the options of a command, which receives an instance."""

    def wrap(command: Callable[[Options], int | None]) -> Callable[..., int | None]:
        def call(**arguments: object) -> int | None:
            return command(options(**arguments))

        fields = signature(options)
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__annotations__ = {
            n: parameter.annotation for n, parameter in fields.parameters.items()
        }
        vars(call)["__signature__"] = fields
        return call

    return wrap
