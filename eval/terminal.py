r"""Text for terminals: invisible characters are escaped, such as `\x1b` for escape."""

import json
import logging
import sys
import unicodedata
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from traceback import format_exception
from types import TracebackType
from typing import TextIO


def visible(text: str) -> str:
    r"""Escape invisible characters except line ends and tabs as Python does: `\u200b`."""
    return escape_invisible(text, lambda character: character.encode("unicode_escape").decode())


def visible_json(text: str) -> str:
    """Escape invisible characters in a JSON document as JSON does; its meaning is unchanged."""
    return escape_invisible(text, lambda character: json.dumps(character)[1:-1])


def escape_invisible(text: str, escape: Callable[[str], str]) -> str:
    """Replace control, format, private, unassigned and surrogate characters by their escapes."""
    if text.isprintable():
        return text
    return "".join(escape(c) if is_invisible(c) else c for c in text)


def is_invisible(character: str) -> bool:
    """Return whether a character is shown by nothing, other than line ends and tabs."""
    return unicodedata.category(character)[0] == "C" and character not in "\n\t"


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line of progress to standard error, or to a file."""
    print(visible(line), file=file or sys.stderr, flush=True)


class VisibleRecord(logging.LogRecord):
    """A log record whose message has its invisible characters escaped."""

    def getMessage(self) -> str:
        """See `LogRecord.getMessage`."""
        return visible(super().getMessage())


@contextmanager
def visible_messages() -> Generator[None]:
    """Escape invisible characters in all log messages and warnings while the block runs."""
    factory, format_warning = logging.getLogRecordFactory(), warnings.formatwarning

    def format_visibly(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        return visible(format_warning(message, category, filename, lineno, line))

    logging.setLogRecordFactory(VisibleRecord)
    warnings.formatwarning = format_visibly
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        warnings.formatwarning = format_warning


def print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an uncaught error; see `sys.excepthook`."""
    say("".join(format_exception(kind, error, trace)).rstrip("\n"))
