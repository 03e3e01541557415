"""Errors a user can cause: each says what was found, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

from eval.terminal import visible


class ReproError(Exception):
    """A user-facing error; the command line prints it on one line and exits with `exit_code`."""

    exit_code = 2

    def __str__(self) -> str:
        return visible(f"{type(self).__name__}: {super().__str__()}")


def error_line(error: BaseException) -> str:
    """Return the class and the message of an error on one line."""
    told = isinstance(error, ReproError)  # its text begins with its class
    return " ".join(f"{'' if told else type(error).__name__ + ': '}{error}".split())


SHOWN_WHOLE = 12  # so many names are shown where none is like the one that was given


class UnknownName(ReproError, LookupError):
    """A name that no registry knows."""

    def __init__(self, kind: str, name: str, known: Iterable[str], command: str | None = None):
        known = sorted(known)
        near = get_close_matches(name, known, n=3)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif len(known) <= SHOWN_WHOLE:
            hint = f"known: {', '.join(known)}"
        else:
            nearest = get_close_matches(name, known, n=3, cutoff=0.0)
            hint = f"the nearest of {len(known)} are {', '.join(nearest)}"
        listing = f" (`{command}` lists all)" if command else ""
        super().__init__(f"no {kind} {name!r}: {hint}{listing}")


class BadValue(ReproError, ValueError):
    """A value of the wrong type or out of range."""


class MissingFile(ReproError, FileNotFoundError):
    """A file that is not there."""


class DamagedFile(ReproError, ValueError):
    """A file whose content is not what was written: truncated, altered or not of its format."""
