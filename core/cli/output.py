"""How commands print: text, JSON or aligned columns, alone on standard output."""

import json
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from typing import TextIO

from core.run.files import as_text
from eval.errors import ReproError

DATA: ContextVar[TextIO | None] = ContextVar("DATA", default=None)


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
def moved(stream: TextIO) -> Generator[TextIO]:
    """A stream to where descriptor 1 leads, which leads to standard error meanwhile."""
    stream.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with open(os.dup(kept), "w", encoding=stream.encoding, errors=stream.errors) as data:
            yield data
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def descriptor(stream: TextIO) -> int | None:
    """The number of a stream's descriptor, None where it has none."""
    with suppress(OSError, ValueError):
        return stream.fileno()
    return None


def print_text(text: object = "", end: str = "\n") -> None:
    """Text as it is."""
    print(text, end=end, file=DATA.get())


def print_json(value: object) -> None:
    """Indented JSON; values that JSON lacks are printed as Python shows them."""
    print_text(json.dumps(value, indent=2, ensure_ascii=False, default=as_text))


def print_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Left-aligned columns with a header."""
    table = [tuple(map(str, head)), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_text("  ".join(cells).rstrip())


def tell(errors: Iterable[ReproError]) -> int:
    """A line on standard error for each, and the exit code that they make: 0 if there are none."""
    code = 0
    for error in errors:
        print(" ".join(str(error).split()), file=sys.stderr)
        code = max(code, error.exit_code)
    return code
