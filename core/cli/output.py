"""Prints the data of commands to standard output: plain to a pipe, drawn by rich in a terminal."""

import json
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from core.settings.canonical import as_text
from eval.errors import ReproError
from eval.terminal import say, visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

DATA: ContextVar[TextIO | None] = ContextVar("DATA", default=None)
ERRORS: ContextVar[TextIO | None] = ContextVar("ERRORS", default=None)


STYLES = {"held": "green", "refuted": "red", "tie": "cyan", "undecided": "yellow"}  # of verdicts


@contextmanager
def only_data_on_stdout() -> Generator[None]:
    """Reserve standard output for the functions of this module while the block runs.

    Output of libraries and of child processes goes to standard error.
    """
    with ExitStack() as stack:
        data = sys.stdout
        if descriptor(data) == 1:
            data = stack.enter_context(redirected_stream(data))
        stack.enter_context(redirect_stdout(sys.stderr))
        token = DATA.set(data)
        stack.callback(DATA.reset, token)
        yield


@contextmanager
def only_errors_on_stderr() -> Generator[None]:
    """Reserve standard error for `tell` while the block runs, without progress and warnings."""
    with ExitStack() as stack:
        errors, nowhere = sys.stderr, stack.enter_context(open(os.devnull, "w"))
        if descriptor(errors) == 2:
            errors = stack.enter_context(redirected_stream(errors, to=nowhere.fileno()))
        stack.enter_context(redirect_stderr(nowhere))
        token = ERRORS.set(errors)
        stack.callback(ERRORS.reset, token)
        yield


@contextmanager
def redirected_stream(stream: TextIO, *, to: int = 2) -> Generator[TextIO]:
    """Redirect a stream's descriptor while the block runs; yield a stream to its old target.

    What the block leaves in the stream's buffer is written to the new target.
    """
    stream.flush()
    number = stream.fileno()
    copy = os.dup(number)
    try:
        os.dup2(to, number)
        with open(os.dup(copy), "w", encoding=stream.encoding, errors=stream.errors) as target:
            yield target
    finally:
        stream.flush()
        os.dup2(copy, number)
        os.close(copy)


def descriptor(stream: TextIO) -> int | None:
    """Return the file descriptor of a stream; None if it has none."""
    with suppress(OSError, ValueError):
        return stream.fileno()
    return None


def print_text(text: object = "", end: str = "\n") -> None:
    """Print text with its invisible characters escaped."""
    print(visible(str(text)), end=end, file=DATA.get())


def print_json(value: object) -> None:
    """Print indented JSON; values that JSON lacks are printed as text."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=as_text)
    print_text(visible_json(text))


def terminal() -> "Console | None":
    """Return the terminal that receives the data; None for a pipe or a file."""
    if not (data := DATA.get() or sys.stdout).isatty():
        return None
    from rich.console import Console

    return Console(file=data, highlight=False)


def print_markdown(text: str) -> None:
    """Print Markdown, in a terminal with its tables drawn."""
    if (console := terminal()) is None:
        return print_text(text)
    from rich.markdown import Markdown

    return console.print(Markdown(visible(text)))


def print_verdicts(lines: Iterable[str]) -> None:
    """Print lines that begin with a verdict, in a terminal coloured by the verdict."""
    console = terminal()
    for line in lines:
        if console is None:
            print_text(line)
        else:
            console.print(visible(line), style=STYLES.get(line.split(maxsplit=1)[0]), markup=False)


def print_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print left-aligned columns with a header, fitted to the width of a terminal."""
    table = [tuple(visible(str(cell)) for cell in row) for row in (head, *rows)]
    if (console := terminal()) is not None:
        return console.print(as_rich(table))
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_text("  ".join(cells).rstrip())
    return None


def as_rich(rows: Sequence[Sequence[str]]) -> "Table":
    """Return a rich table whose header is the first row, without lines between columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in rows[0]:
        table.add_column(Text(name), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def tell(errors: Iterable[ReproError]) -> int:
    """Print each error as a line on standard error; return the highest exit code or 0."""
    code = 0
    for error in errors:
        say(" ".join(str(error).split()), ERRORS.get())
        code = max(code, error.exit_code)
    return code


def say_loading() -> None:
    """Report that the first seconds of a command load torch, unless it is loaded already."""
    if "torch" not in sys.modules:
        say("loading torch and transformers")
