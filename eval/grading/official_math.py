r"""Equality of answers by the string rule of the MATH benchmark (arXiv 2103.03874).

Both texts are brought to a normal form and compared as texts, so that `1,000` differs from `1000`,
`0.25` from `\frac{1}{4}` and `x+1` from `1+x`. Source: hendrycks/math, `math_equivalence.py`.
"""

import re

REPLACED = (
    ("\n", ""),
    (r"\!", ""),
    (r"\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    (r"\left", ""),
    (r"\right", ""),
    (r"^{\circ}", ""),
    (r"^\circ", ""),
    (r"\$", ""),
)
UNIT = r"\text{ "
INTEGER_RATIO = re.compile(r"(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)")


class Malformed(ValueError):
    """A text that the rule cannot bring to a normal form."""


def is_equivalent(first: str, second: str) -> bool:
    """Return whether two answers are equal: by normal form, or as texts if one has none."""
    try:
        return normal_form(first) == normal_form(second)
    except Malformed:
        return first == second


def normal_form(text: str) -> str:
    r"""Return the normal form of an answer: no spaces, units, degrees or `\%`; `\frac{a}{b}`.

    Raises:
        Malformed: the text has two units, or ends after `\sqrt` or `\frac`.
    """
    for old, new in REPLACED:
        text = text.replace(old, new)
    text = without_unit(text).replace(r"\%", "")
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if text.startswith("."):
        text = f"0{text}"
    fractions = braced_fractions(braced_roots(without_name(text)).replace(" ", ""))
    if fractions == "0.5":
        return r"\frac{1}{2}"
    ratio = INTEGER_RATIO.fullmatch(fractions)
    return rf"\frac{{{ratio[1]}}}{{{ratio[2]}}}" if ratio else fractions


def without_unit(text: str) -> str:
    r"""Return the part before a unit `\text{ cm}`.

    Raises:
        Malformed: there are two units.
    """
    head, *units = text.split(UNIT)
    if len(units) > 1:
        raise Malformed(text)
    return head


def without_name(text: str) -> str:
    """Return the right side of an equation whose left side has at most two characters."""
    sides = text.split("=")
    return sides[1] if len(sides) == 2 and len(sides[0]) <= 2 else text


def braced_roots(text: str) -> str:
    r"""Return a text with braces around the first character after every bare `\sqrt`.

    Raises:
        Malformed: nothing is between a `\sqrt` and the next one or the end.
    """
    head, *rests = text.split(r"\sqrt")
    if "" in rests:
        raise Malformed(text)
    roots = (rest if rest[0] == "{" else f"{{{rest[0]}}}{rest[1:]}" for rest in rests)
    return r"\sqrt".join((head, *roots))


def braced_fractions(text: str) -> str:
    r"""Return a text without spaces with braces around the one-character parts of every `\frac`.

    It is returned unchanged if a single character follows a `\frac`.

    Raises:
        Malformed: nothing is between a `\frac` and the next one or the end.
    """
    head, *rests = text.split(r"\frac")
    parts = [head]
    for rest in rests:
        if not rest:
            raise Malformed(text)
        if len(rest) == 1 and rest != "{":
            return text
        parts.append(rest if rest[0] == "{" else f"{{{rest[0]}}}{denominator_first(rest[1:])}")
    return r"\frac".join(parts)


def denominator_first(rest: str) -> str:
    """Return a text that begins with a denominator, in braces if it is one character."""
    return rest if rest[0] == "{" else f"{{{rest[0]}}}{rest[1:]}"
