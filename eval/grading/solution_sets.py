r"""Reads inequalities in one variable as the intervals that they describe."""

import re

from eval.grading.brackets import Form

ENDPOINT = r"(?P<{}>[^<>=]+?)"
SIGN = r"(?P<{}><|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z]))\s*+"
NAME = r"\s*+(?:[a-z]|\\[a-z]+)\s*"
BETWEEN = re.compile(
    ENDPOINT.format("a") + SIGN.format("s") + NAME + SIGN.format("t") + ENDPOINT.format("b")
)
ONE_SIDE = re.compile(NAME + SIGN.format("s") + ENDPOINT.format("b"))
OTHER_SIDE = re.compile(ENDPOINT.format("a") + SIGN.format("s") + NAME)


def relation(text: str) -> Form | None:
    r"""An inequality in one variable as the interval it describes: `x < 3` is (-\infty, 3)."""
    match = BETWEEN.fullmatch(text) or ONE_SIDE.fullmatch(text) or OTHER_SIDE.fullmatch(text)
    if match is None:
        return None
    found: dict[str, str | None] = {"a": None, "b": None, "t": None, **match.groupdict()}
    first, second = found["s"] or "", found["t"]
    if second is not None and strict_up(first) != strict_up(second):
        return None
    left, right = ends(found["a"], first, found["b"], second or first)
    if left is None and right is None:
        return None
    return Form(
        "tuple",
        f"{left[0] if left else '('}{right[0] if right else ')'}",
        (
            left[1:] if left else r"-\infty",
            right[1:] if right else r"\infty",
        ),
    )


def ends(a: str | None, first: str, b: str | None, second: str) -> tuple[str | None, str | None]:
    """(left bracket and end, end after right bracket) of `a first x second b`."""
    low: str | None = None
    high: str | None = None
    for end, sign, before in ((a, first, True), (b, second, False)):
        if end is None:
            continue
        closed = sign not in ("<", ">")
        if strict_up(sign) == before:
            low = ("[" if closed else "(") + end.strip()
        else:
            high = ("]" if closed else ")") + end.strip()
    return low, high


def strict_up(sign: str) -> bool:
    """Does the sign point to larger values on the right?"""
    return sign in ("<", r"\le")
