r"""Converts conditions on one variable to the intervals that they describe.

A condition is an inequality (`x < 3`), one of an absolute value (`|x - 1| > 2`), an excluded value
(`x \ne 3`), a set without some points (`(0, 36) \setminus \{9\}`), or any of them in a set builder.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from eval.grading.brackets import Form, is_enclosed, plus_minus, split_top
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
    """An interval: its left bracket, the texts of its ends, and its right bracket."""

    left_bracket: str
    low: str
    high: str
    right_bracket: str

    def __str__(self) -> str:
        return f"{self.left_bracket}{self.low},{self.high}{self.right_bracket}"


LINE = Interval("(", r"-\infty", r"\infty", ")")


def solution_set(text: str) -> Form | None:
    """Return the intervals of a condition as a pair or a union of pairs; None for other texts."""
    bars = BAR.sub("|", text)
    builder = BUILDER.fullmatch(bars)
    solution = intervals(builder["condition"].strip() if builder else bars)
    if not solution:
        return None
    if len(solution) > 1:
        return Form("union", "", tuple(map(str, solution)))
    [interval] = solution
    brackets = interval.left_bracket + interval.right_bracket
    return Form("tuple", brackets, (interval.low, interval.high))


def intervals(text: str) -> list[Interval]:
    """Return the intervals that a condition describes; an empty list for other texts."""
    sign = WITHOUT.search(text)
    if sign:
        return set_difference(text[: sign.start()].strip(), text[sign.end() :].strip())
    if re.fullmatch(REALS, text):
        return [LINE]
    pieces = split_top(AND.sub(",", text), {",", ";"})
    exclusions = [UNEQUAL.fullmatch(piece) for piece in pieces]
    if any(exclusions):
        points = [m["points"] if m else p for m, p in zip(exclusions, pieces, strict=True)]
        return exclude_points(pieces, points)
    interval = inequality(text)
    return [interval] if interval else absolute(text)


def set_difference(base: str, points: str) -> list[Interval]:
    r"""Return the intervals of `base` without the points of a set `\{...\}`; else an empty list."""
    if not is_enclosed(points, r"\{", r"\}"):
        return []
    return without(listed_intervals(base), [points[2:-2]])


def exclude_points(pieces: list[str], points: list[str]) -> list[Interval]:
    """Return the first inequality among the pieces, else the line, without the excluded points.

    `points` are the pieces with the points of each exclusion in its place.
    """
    base = next((i for i in map(inequality, pieces) if i), LINE)
    return without([base], [p for p in points if not inequality(p)])


def listed_intervals(text: str) -> list[Interval]:
    """Return the intervals of a union that is written out; an empty list for other texts."""
    bare = text[1:-1] if r"\cup" in text and is_enclosed(text, "(", ")") else text
    members: list[Interval] = []
    for part in split_top(bare, {r"\cup"}):
        ends = part[1:-1].split(",")
        if re.fullmatch(REALS, part):
            members.append(LINE)
        elif len(ends) == 2 and part[0] in "([" and part[-1] in ")]":
            members.append(Interval(part[0], ends[0].strip(), ends[1].strip(), part[-1]))
        else:
            return []
    return members


def without(base: list[Interval], points: Sequence[str]) -> list[Interval]:
    """Return intervals without some points; an empty list if it is unknown where a point lies."""
    all_points = [
        p for piece in points for part in split_top(piece, {",", ";"}) for p in plus_minus(part)
    ]
    remaining = base
    for point in all_points:
        pieces: list[Interval] = []
        for interval in remaining:
            values = [value_of(t) for t in (interval.low, point, interval.high)]
            if None in values and len(all_points) + len(base) > 2:
                return []
            pieces += split_at(interval, point, values)
        remaining = pieces
    return remaining


def split_at(
    interval: Interval, point: str, values: list[Fraction | float | None]
) -> list[Interval]:
    """Return an interval without a point, as one or two intervals.

    `values` are those of the low end, the point and the high end. If one of them is unknown, the
    point is taken to lie inside.
    """
    low, middle, high = values
    if low is None or middle is None or high is None or low < middle < high:
        return [
            replace(interval, high=point, right_bracket=")"),
            replace(interval, left_bracket="(", low=point),
        ]
    left_bracket = "(" if middle == low else interval.left_bracket
    right_bracket = ")" if middle == high else interval.right_bracket
    return [replace(interval, left_bracket=left_bracket, right_bracket=right_bracket)]


def value_of(text: str) -> Fraction | float | None:
    """Return the value of an end or a point; None if it is neither infinite nor a plain number."""
    bare = text.replace(" ", "")
    if bare in (r"\infty", r"+\infty", r"-\infty"):
        return -inf if bare[0] == "-" else inf
    number = read_number(text)
    return number.value if number else None


def inequality(text: str) -> Interval | None:
    r"""Return the interval of an inequality in one variable: `x < 3` is (-\infty, 3); else None."""
    match = BETWEEN.fullmatch(text) or ONE_SIDE.fullmatch(text) or OTHER_SIDE.fullmatch(text)
    if match is None:
        return None
    groups: dict[str, str | None] = {"a": None, "b": None, "t": None, **match.groupdict()}
    first, second = groups["s"] or "", groups["t"]
    if second is not None and is_less(first) != is_less(second):
        return None
    return interval_between(groups["a"], first, groups["b"], second or first)


def interval_between(a: str | None, first: str, b: str | None, second: str) -> Interval:
    """Return the interval of `a first x second b`, unbounded for an end that is None."""
    interval = LINE
    for end, sign, is_before in ((a, first, True), (b, second, False)):
        if end is None:
            continue
        closed = sign not in ("<", ">")
        if is_less(sign) == is_before:
            interval = replace(interval, left_bracket="(["[closed], low=end.strip())
        else:
            interval = replace(interval, high=end.strip(), right_bracket=")]"[closed])
    return interval


def is_less(sign: str) -> bool:
    """Return whether a sign of inequality has the larger value on its right."""
    return sign in ("<", r"\le")


def absolute(text: str) -> list[Interval]:
    r"""Return the intervals of `|k x + c| < r` and the like; an empty list for other texts."""
    bare = re.sub(r"\s+", "", text)
    turned = TURNED.fullmatch(bare)
    match = turned or ABSOLUTE.fullmatch(bare)
    if match is None:
        return []
    sign = OPPOSITE[match["s"]] if turned else match["s"]
    bounds = distance_bounds(match["k"], match["c"], match["r"])
    if bounds is None:
        return []
    low, high = bounds
    closed = sign not in ("<", ">")
    if is_less(sign):
        return [Interval("(["[closed], low, high, ")]"[closed])]
    return [
        replace(LINE, high=low, right_bracket=")]"[closed]),
        replace(LINE, left_bracket="(["[closed], low=high),
    ]


def distance_bounds(factor: str, constant: str | None, radius: str) -> tuple[str, str] | None:
    """Return the values of x with |factor x + constant| = radius, the lower one first.

    Returns None if the factor is 0 or the constant or the radius is no plain number.
    """
    if not factor and not constant:
        return f"-({radius})", radius
    c, r = read_number((constant or "0").lstrip("+")), read_number(radius)
    k = int(factor or 1)
    if c is None or r is None or k == 0:
        return None
    return str((-r.value - c.value) / k), str((r.value - c.value) / k)
