"""How commands print, alone on standard output: as it is to a pipe, drawn by rich to a terminal."""

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
    """Leave standard output to the functions below.

    What libraries and the processes that they start write there goes to standard error.
    """
    with ExitStack() as stack:
        data = sys.stdout
        if descriptor(data) == 1:
            data = stack.enter_context(moved(data))
        stack.enter_context(redirect_stdout(sys.stderr))
        token = DATA.set(data)
        stack.callback(DATA.reset, token)
        yield


@contextmanager
def only_errors_on_stderr() -> Generator[None]:
    """Leave standard error to `tell`: no progress, and nothing of libraries or of processes."""
    with ExitStack() as stack:
        errors, nowhere = sys.stderr, stack.enter_context(open(os.devnull, "w"))
        if descriptor(errors) == 2:
            errors = stack.enter_context(moved(errors, to=nowhere.fileno()))
        stack.enter_context(redirect_stderr(nowhere))
        token = ERRORS.set(errors)
        stack.callback(ERRORS.reset, token)
        yield


@contextmanager
def moved(stream: TextIO, *, to: int = 2) -> Generator[TextIO]:
    """A stream to where the descriptor of this one leads, which leads elsewhere meanwhile."""
    stream.flush()
    own = stream.fileno()
    kept = os.dup(own)
    try:
        os.dup2(to, own)
        with open(os.dup(kept), "w", encoding=stream.encoding, errors=stream.errors) as same:
            yield same
    finally:
        os.dup2(kept, own)
        os.close(kept)


def descriptor(stream: TextIO) -> int | None:
    """The number of a stream's descriptor, None where it has none."""
    with suppress(OSError, ValueError):
        return stream.fileno()
    return None


def print_text(text: object = "", end: str = "\n") -> None:
    """Print text, with what no reader sees written out."""
    print(visible(str(text)), end=end, file=DATA.get())


def print_json(value: object) -> None:
    """Indented JSON; values that JSON lacks are printed as Python shows them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=as_text)
    print_text(visible_json(text))


def terminal() -> "Console | None":
    """The terminal that data goes to; None for a pipe or a file."""
    if not (data := DATA.get() or sys.stdout).isatty():
        return None
    from rich.console import Console

    return Console(file=data, highlight=False)


def print_markdown(text: str) -> None:
    """Markdown as it is; in a terminal its tables are drawn."""
    if (console := terminal()) is None:
        return print_text(text)
    from rich.markdown import Markdown

    return console.print(Markdown(visible(text)))


def print_verdicts(lines: Iterable[str]) -> None:
    """Lines that begin with a verdict, which has a colour in a terminal."""
    console = terminal()
    for line in lines:
        if console is None:
            print_text(line)
        else:
            console.print(visible(line), style=STYLES.get(line.split(maxsplit=1)[0]), markup=False)


def print_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Left-aligned columns with a header; in a terminal its width is kept."""
    table = [tuple(visible(str(cell)) for cell in row) for row in (head, *rows)]
    if (console := terminal()) is not None:
        return console.print(as_rich(table))
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_text("  ".join(cells).rstrip())
    return None


def as_rich(rows: Sequence[Sequence[str]]) -> "Table":
    """Rows under the first of them, without lines between columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in rows[0]:
        table.add_column(Text(name), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def tell(errors: Iterable[ReproError]) -> int:
    """A line on standard error for each, and the exit code that they make: 0 if there are none."""
    code = 0
    for error in errors:
        say(" ".join(str(error).split()), ERRORS.get())
        code = max(code, error.exit_code)
    return code


def say_loading() -> None:
    """Say what the first seconds of a command go to, unless they have gone to it already."""
    if "torch" not in sys.modules:
        say("loading torch and transformers")
