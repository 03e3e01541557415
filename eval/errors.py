"""Errors that users can cause; each message says what was found, what is allowed and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

from eval.terminal import visible


class ReproError(Exception):
    """An error that users can correct; commands print it on one line and exit with `exit_code`."""

    exit_code = 2

    def __str__(self) -> str:
        return visible(f"{type(self).__name__}: {super().__str__()}")


def error_line(error: BaseException) -> str:
    """Return the class and the message of an error on one line."""
    has_class = isinstance(error, ReproError)  # its text begins with the class
    return " ".join(f"{'' if has_class else type(error).__name__ + ': '}{error}".split())


MAX_LISTED = 12  # all allowed names are listed if there are at most this many


class UnknownName(ReproError, LookupError):
    """A name that is not in its table; the message lists the nearest names."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str], command: str | None = None):
        names = sorted(allowed)
        near = nearest_names(name, names)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif len(names) <= MAX_LISTED:
            hint = f"known: {', '.join(names)}"
        else:
            nearest = nearest_names(name, names, cutoff=0.0)
            hint = f"the nearest of {len(names)} are {', '.join(nearest)}"
        listing = f" (`{command}` lists all)" if command else ""
        super().__init__(f"no {kind} {name!r}: {hint}{listing}")


def nearest_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three of the names that are similar to a name regardless of case.

    A hyphen and an underscore count as equal, too.
    """
    by_key: dict[str, list[str]] = {}
    for candidate in names:
        by_key.setdefault(candidate.casefold().replace("_", "-"), []).append(candidate)
    keys = get_close_matches(name.casefold().replace("_", "-"), by_key, n=3, cutoff=cutoff)
    return [candidate for key in keys for candidate in by_key[key]][:3]


class BadValue(ReproError, ValueError):
    """A value of the wrong type or out of range."""


class MissingFile(ReproError, FileNotFoundError):
    """A file that does not exist."""


class DamagedFile(ReproError, ValueError):
    """A file whose content is not what was written: truncated, altered or not of its format."""
