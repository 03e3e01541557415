"""Checks of names that become parts of the names of files and folders."""

import re

from eval.errors import BadValue

LONGEST = 64  # characters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_name(kind: str, name: object) -> None:
    """Refuse a name that a folder or a file cannot safely have on every system.

    Raises:
        BadValue: it is no text of letters, digits and . _ + -, begins with one of these signs, or
            is too long.
    """
    if not (isinstance(name, str) and len(name) <= LONGEST and NAME.fullmatch(name)):
        raise BadValue(
            f"{kind} {name!r}: expected at most {LONGEST} letters, digits and . _ + -, a letter or "
            "a digit first"
        )


def check_slug(name: object) -> None:
    """Refuse a slug of a paper that is none.

    Raises:
        BadValue: it is no text of lower-case words, or is too long.
    """
    if not (isinstance(name, str) and len(name) <= LONGEST and SLUG.fullmatch(name)):
        raise BadValue(
            f"slug {name!r}: expected lower-case words joined by hyphens, at most {LONGEST} "
            "characters"
        )
