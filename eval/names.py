"""Checks of names that become parts of file and folder names."""

import re

from eval.errors import BadValue

LONGEST = 64  # characters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_name(kind: str, name: object) -> None:
    """Raise unless a name is safe as a file or folder name on every system.

    Raises:
        BadValue: the name is not a text of letters, digits and . _ + -, does not begin with a
            letter or a digit, or is too long.
    """
    if not (isinstance(name, str) and len(name) <= LONGEST and NAME.fullmatch(name)):
        raise BadValue(
            f"{kind} {name!r}: expected at most {LONGEST} letters, digits and . _ + -, a letter or "
            "a digit first"
        )


def check_slug(name: object) -> None:
    """Raise unless a name is a valid slug of a paper.

    Raises:
        BadValue: the slug is not a text of lower-case words joined by hyphens, or is too long.
    """
    if not (isinstance(name, str) and len(name) <= LONGEST and SLUG.fullmatch(name)):
        raise BadValue(
            f"slug {name!r}: expected lower-case words joined by hyphens, at most {LONGEST} "
            "characters"
        )
