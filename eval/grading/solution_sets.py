r"""Reads conditions on one variable as the intervals that they describe.

An inequality (`x < 3`), one of an absolute value (`|x - 1| > 2`), an excluded value (`x \ne 3`), a
set without some points (`(0, 36) \setminus \{9\}`), and each of them in a set builder.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from eval.grading.brackets import Form, enclosed, plus_minus, split_top
from eval.grading.numerals import read_number

ENDPOINT = r"(?P<{}>[^<>=]+?)"
SIGN = r"(?P<{}><|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z]))\s*+"
NAME = r"\s*+(?:[a-z]|\\[a-z]+)\s*"
BETWEEN = re.compile(
    ENDPOINT.format("a") + SIGN.format("s") + NAME + SIGN.format("t") + ENDPOINT.format("b")
)
ONE_SIDE = re.compile(NAME + SIGN.format("s") + ENDPOINT.format("b"))
OTHER_SIDE = re.compile(ENDPOINT.format("a") + SIGN.format("s") + NAME)
BAR = re.compile(r"\\[lr]?vert(?![A-Za-z])|\\mid(?![A-Za-z])")
DISTANCE = r"\|(?P<k>\d{0,9})[a-z](?P<c>[+-][^|<>=]{1,60})?\|"
ABSOLUTE = re.compile(DISTANCE + SIGN.format("s") + r"(?P<r>[^<>=|]{1,60})")
TURNED = re.compile(r"(?P<r>[^<>=|]{1,60})" + SIGN.format("s") + DISTANCE)
OPPOSITE = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
UNEQUAL = re.compile(rf"{NAME}(?:\\ne(?![A-Za-z])|≠)\s*+(?P<points>.+)", re.DOTALL)
WITHOUT = re.compile(r"\\(?:setminus|smallsetminus|backslash)(?![A-Za-z])|[-−](?=\s*+\\\{)")
REALS = r"(?:\\mathbb\s*+(?:R|\{\s*+R\s*+\})|\\R(?![A-Za-z])|ℝ)"
BUILDER = re.compile(
    rf"\\\{{\s*+[a-z]\s*+(?:\\in\s*+{REALS}\s*+)?(?:\||:)(?P<condition>.+)\\\}}", re.DOTALL
)
AND = re.compile(r"\\text\s*+\{\s*+,?\s*+(?:and|or)\s*+\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z])")


@dataclass(frozen=True)
class Interval:
    """An interval by its brackets and what is written at its ends."""

    left: str
    low: str
    high: str
    right: str

    def __str__(self) -> str:
        return f"{self.left}{self.low},{self.high}{self.right}"


LINE = Interval("(", r"-\infty", r"\infty", ")")


def solution_set(text: str) -> Form | None:
    """Return the intervals of a condition as a pair or a union of pairs; None for other texts."""
    bars = BAR.sub("|", text)
    builder = BUILDER.fullmatch(bars)
    found = intervals(builder["condition"].strip() if builder else bars)
    if not found:
        return None
    if len(found) > 1:
        return Form("union", "", tuple(map(str, found)))
    return Form("tuple", found[0].left + found[0].right, (found[0].low, found[0].high))


def intervals(text: str) -> list[Interval]:
    """Return the intervals that a condition describes; none for other texts."""
    sign = WITHOUT.search(text)
    if sign:
        points = text[sign.end() :].strip()
        known = enclosed(points, r"\{", r"\}")
        return without(listed(text[: sign.start()].strip()), [points[2:-2]]) if known else []
    if re.fullmatch(REALS, text):
        return [LINE]
    pieces = split_top(AND.sub(",", text), {",", ";"})
    excluded = [UNEQUAL.fullmatch(piece) for piece in pieces]
    if any(excluded):
        points = [m["points"] if m else p for m, p in zip(excluded, pieces, strict=True)]
        base = next((i for i in map(inequality, pieces) if i), LINE)
        return without([base], [p for p in points if not inequality(p)])
    one = inequality(text)
    return [one] if one else absolute(text)


def listed(text: str) -> list[Interval]:
    """Return the intervals of a union that is written out; none for other texts."""
    bare = text[1:-1] if r"\cup" in text and enclosed(text, "(", ")") else text
    found: list[Interval] = []
    for part in split_top(bare, {r"\cup"}):
        ends = part[1:-1].split(",")
        if re.fullmatch(REALS, part):
            found.append(LINE)
        elif len(ends) == 2 and part[0] in "([" and part[-1] in ")]":
            found.append(Interval(part[0], ends[0].strip(), ends[1].strip(), part[-1]))
        else:
            return []
    return found


def without(base: list[Interval], points: Sequence[str]) -> list[Interval]:
    """Return intervals without some points; none where it is unknown which of them holds one."""
    each = [
        p for piece in points for part in split_top(piece, {",", ";"}) for p in plus_minus(part)
    ]
    found = base
    for point in each:
        pieces: list[Interval] = []
        for interval in found:
            known = [value(t) for t in (interval.low, point, interval.high)]
            if None in known and len(each) + len(base) > 2:
                return []
            pieces += cut(interval, point, known)
        found = pieces
    return found


def cut(interval: Interval, point: str, known: list[Fraction | float | None]) -> list[Interval]:
    """Return an interval without a point; the point lies within where no values are known."""
    low, at, high = known
    if low is None or at is None or high is None or low < at < high:
        return [
            replace(interval, high=point, right=")"),
            replace(interval, left="(", low=point),
        ]
    left = "(" if at == low else interval.left
    right = ")" if at == high else interval.right
    return [replace(interval, left=left, right=right)]


def value(text: str) -> Fraction | float | None:
    """Return the value of an end or a point; None if it is no plain number."""
    bare = text.replace(" ", "")
    if bare in (r"\infty", r"+\infty", r"-\infty"):
        return -inf if bare[0] == "-" else inf
    number = read_number(text)
    return number.value if number else None


def inequality(text: str) -> Interval | None:
    r"""Return the interval of an inequality in one variable: `x < 3` is (-\infty, 3)."""
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
    return Interval(
        left[0] if left else "(",
        left[1:] if left else r"-\infty",
        right[1:] if right else r"\infty",
        right[0] if right else ")",
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


def absolute(text: str) -> list[Interval]:
    r"""Return the intervals of `|k x + c| < r` and the like; none for other texts."""
    bare = re.sub(r"\s+", "", text)
    turned = TURNED.fullmatch(bare)
    match = turned or ABSOLUTE.fullmatch(bare)
    if match is None:
        return []
    sign = OPPOSITE[match["s"]] if turned else match["s"]
    low, high = f"-({match['r']})", match["r"]
    if match["k"] or match["c"]:
        c, r = (read_number(part) for part in ((match["c"] or "0").lstrip("+"), match["r"]))
        k = int(match["k"] or 1)
        if c is None or r is None or k == 0:
            return []
        low, high = (str((end - c.value) / k) for end in (-r.value, r.value))
    closed = sign not in ("<", ">")
    if strict_up(sign):
        return [Interval("(["[closed], low, high, ")]"[closed])]
    return [
        replace(LINE, high=low, right=")]"[closed]),
        replace(LINE, left="(["[closed], low=high),
    ]
