r"""Text for terminals: characters that no reader sees are written out, as `\x1b` for escape."""

import json
import logging
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from traceback import format_exception
from types import TracebackType
from typing import Any, TextIO
from unicodedata import category


def visible(text: str) -> str:
    r"""Write what no reader sees, all but line ends and tabs, as Python writes it: `\u200b`."""
    return written_out(text, lambda character: character.encode("unicode_escape").decode())


def visible_json(text: str) -> str:
    """Write what no reader sees as JSON writes it in a string: the document means the same."""
    return written_out(text, lambda character: json.dumps(character)[1:-1])


def written_out(text: str, escape: Callable[[str], str]) -> str:
    """Replace control, format, private and unassigned characters, and halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or category(c)[0] != "C" else escape(c) for c in text)


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line of progress on standard error, or to a file."""
    print(visible(line), file=file or sys.stderr, flush=True)


class VisibleRecord(logging.LogRecord):
    """A message that a library logs, with what no reader sees written out."""

    def getMessage(self) -> str:
        """See `LogRecord.getMessage`."""
        return visible(super().getMessage())


@contextmanager
def visible_messages() -> Generator[None]:
    """Write out what no reader sees in all that is logged or warned of while the block runs."""
    factory, formatted = logging.getLogRecordFactory(), warnings.formatwarning

    def format_visibly(*words: Any, **named: Any) -> str:  # Any: of `formatwarning`
        return visible(formatted(*words, **named))

    logging.setLogRecordFactory(VisibleRecord)
    warnings.formatwarning = format_visibly
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        warnings.formatwarning = formatted


def print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an error that nobody caught; see `sys.excepthook`."""
    say("".join(format_exception(kind, error, trace)).rstrip("\n"))
