"""The command `repro`: reproduces a paper, scores it and says whether its claims held."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from core.cli.checking import bench, check, doctor
from core.cli.cleaning import clean
from core.cli.commands import Commands
from core.cli.evaluating import evaluate
from core.cli.finding import compare, runs
from core.cli.interrupts import INTERRUPTED, interruptible
from core.cli.output import only_data_on_stdout, only_errors_on_stderr, tell
from core.cli.profiling import probe, profile
from core.cli.running import one, reproduce, run
from core.cli.scoring import score
from core.cli.showing import diff, list_papers, show
from core.cli.showing_plan import plan
from core.cli.tables import publish, report, table
from core.cli.writing import new
from core.paper.registry import GROUP
from eval.errors import ReproError
from eval.plugins import use
from eval.terminal import print_traceback, say, visible_messages

QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)


def guard_command(command: Callable[..., int | None]) -> Callable[..., None]:
    """Wrap a command so that it ends with its exit code and prints user errors on one line."""

    @wraps(command)
    def call(**arguments: object) -> None:
        sys.excepthook = print_traceback
        try:
            quiet = only_errors_on_stderr() if QUIET.get() else nullcontext()
            with interruptible(), quiet, only_data_on_stdout(), visible_messages():
                code = command(**arguments) or 0
        except ReproError as error:
            code = tell([error])
        except OSError as error:
            if error.filename is None:  # of no file: see `Commands`
                raise
            message = (
                f"{type(error).__name__}: {error.filename2 or error.filename}: {error.strerror}"
            )
            say(f"{message}; give another path, or mend this one")
            code = ReproError.exit_code
        except KeyboardInterrupt:
            message_of_interrupt = (
                "interrupted: what was finished is kept; the same command continues from there"
            )
            say(message_of_interrupt)
            code = INTERRUPTED
        raise typer.Exit(code)

    return call


app = typer.Typer(
    name="repro",
    cls=Commands,
    help=__doc__,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def print_version(is_requested: bool) -> None:
    """Print the version of the distribution with our papers, and exit."""
    if is_requested:
        versions = [p.dist.version for p in entry_points(group=GROUP, value="papers") if p.dist]
        typer.echo(f"repro {versions[0] if versions else '(not installed)'}")
        raise typer.Exit


def add_plugins(files: list[Path] | None) -> list[Path] | None:
    """Register plug-in files before a command looks up their rows."""
    try:
        for file in files or ():
            use(file)
    except ReproError as error:
        raise typer.Exit(tell([error])) from error
    return files


def be_quiet(is_requested: bool) -> None:
    """Suppress everything but data and errors."""
    QUIET.set(is_requested)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="No progress: data and errors alone.", callback=be_quiet),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            help="A Python file with papers, benchmarks or data sets of yours.",
            callback=add_plugins,
        ),
    ] = None,
) -> None:
    """Options that precede a command."""


# What a user wants to do, the first thing first: commands with their names and an example of each.
MENU: Mapping[str, Mapping[str, tuple[Callable[..., int | None], str]]] = {
    "Run a paper": {
        "run": (run, "repro run dapo --claims --seeds 3"),
        "plan": (plan, "repro plan dapo --at gpu learning_rate=1e-5"),
        "list": (list_papers, "repro list --family grpo"),
        "show": (show, "repro show dapo"),
        "reproduce": (reproduce, "repro reproduce grpo --looks 3"),
    },
    "Show results": {
        "runs": (runs, "repro runs dapo --at cpu"),
        "table": (table, "repro table deepseekmath --format latex"),
        "compare": (compare, "repro compare 1f0c 9a3e --samples 5"),
        "report": (report, "repro report"),
    },
    "Score": {
        "score": (score, "repro score answers.jsonl --benchmark gsm8k"),
        "eval": (evaluate, "repro eval pocket-instruct --benchmarks pocket-gsm8k --limit 20"),
    },
    "Add a paper": {
        "new": (new, "repro new my-paper --arxiv 2501.01234 --base dapo"),
        "diff": (diff, "repro diff dr-grpo trl"),
        "check": (check, "repro check dapo"),
        "publish": (publish, "repro publish dapo --accept"),
    },
    "Try an algorithm": {
        "profile": (profile, "repro profile dapo --only learns,many-updates"),
    },
    "Look after a machine": {
        "doctor": (doctor, "repro doctor"),
        "clean": (clean, "repro clean --unfinished"),
        "bench": (bench, "repro bench commands"),
    },
}
for section, verbs in MENU.items():
    for name, (verb, example) in verbs.items():
        register = app.command(name, rich_help_panel=section, epilog=f"Example: {example}")
        register(guard_command(verb))
for hidden in (one, probe):
    app.command(hidden=True)(guard_command(hidden))

if __name__ == "__main__":
    app()
