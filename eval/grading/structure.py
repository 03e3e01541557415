r"""Compares answers by their form: tuples, sets, intervals, unions, ratios, matrices, words.

A form decides how its parts are compared (in order or not) and is itself part of the answer:
(1,2) is not 1,2 and (0,1] is not (0,1). The parts go to `leaf`, which compares two values.
"""

import re
from collections.abc import Callable

from eval.grading.brackets import Form, closing_index, enclosed, plus_minus, split_top
from eval.grading.cleaning import clean
from eval.grading.numerals import read_number
from eval.grading.solution_sets import solution_set
from eval.grading.units import changes_value

Leaf = Callable[[str, str], bool]
UNORDERED = {"list", "union"}
JOIN = re.compile(
    r"\\text\s*\{\s*+,?\s*+(?:and|or|和|或)\s*\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z])|和|或"
)
MEMBER = re.compile(
    r"^\s*(?:(?:[A-Za-z]|\\text\{\w\})(?:\([a-z]\))?|\([A-Za-z](?:\s*,\s*[A-Za-z])+\))\s*"
    r"(?:\\in(?![A-Za-z])|=(?=\s*(?:\(|\[|\\\{|\\begin)))\s*"
)
COORDINATE = re.compile(r"\s*([A-Za-z])\s*=\s*(.+)", re.DOTALL)
BASE = re.compile(r"([0-9A-F ]+)_\s*+\{?\s*+(?:\\text\s*+\{)?\s*+(\w+)\s*\}*")
RATIO = re.compile(r"[^:]+(?::[^:]+)+")
MATRIX = re.compile(
    r"\\begin\{[pbvBV]?(?:matrix|array)\}(?:\{[clr|]*\})?(.*)\\end\{\w+\}", re.DOTALL
)
WORDS = re.compile(
    r"\(?\s*\\text\s*\{(?P<text>[^{}]*)\}\s*\)?|\(\s*(?P<choice>[A-Z])\s*\)"
    r"|(?P<bare>[A-Za-z][a-z]+(?: [A-Za-z]+)*)"
)
UNIT = re.compile(
    r"(?<=[\w}).])\s*\\text\s*\{[^{}]*\}\s*(?:\^\s*\{?\d\}?)?$"
    r"|(?<=[}\w)])\s*\^\s*+\{?\s*+\\circ\s*\}?$"
)
WRAPPED = re.compile(r"\\text\s*\{([^{},;]*+[,;][^{}]*+)\}")


def same_answer(gold: str, given: str, leaf: Leaf) -> bool:
    """Are the two the same answer, form and values?"""
    return same_form(form_of(clean(gold)), form_of(clean(given)), leaf)


def same_form(gold: Form, given: Form, leaf: Leaf) -> bool:
    """Same kind, same brackets, and parts that pair up."""
    if gold.kind == "tuple" and given.kind == "list":
        return same_point(gold, given, leaf)
    if {gold.kind, given.kind} == {"union", "list"}:
        sets = as_union(gold), as_union(given)
        return sets[0].kind == sets[1].kind and same_form(*sets, leaf)
    if {gold.kind, given.kind} == {"value", "ratio"}:
        return same_ratio(gold, given)
    if gold.kind == "base" and given.kind == "value":  # the question names the base
        return gold.mark.partition("_")[0] == given.parts[0].replace(" ", "")
    if gold.kind == "word" and given.kind != "word":
        return gold.mark == word(given.parts[0]) if given.kind == "value" else False
    if gold.kind == "value" and given.kind == "word":  # a bare letter: C, (C)
        return len(gold.parts[0]) == 1 and word(gold.parts[0]) == given.mark
    if (gold.kind, gold.mark, len(gold.parts)) != (given.kind, given.mark, len(given.parts)):
        return False
    if gold.kind == "value":
        return leaf(gold.parts[0], given.parts[0])

    def same(a: str, b: str) -> bool:
        return same_form(form_of(a), form_of(b), leaf)

    if gold.kind not in UNORDERED:
        return all(same(a, b) for a, b in zip(gold.parts, given.parts, strict=True))
    return paired(list(gold.parts), list(given.parts), same)


def as_union(form: Form) -> Form:
    """Several conditions, each of which is enough, as the union of their intervals."""
    is_one = form.kind == "list" and all(map(solution_set, form.parts))
    return Form("union", "", form.parts) if is_one else form


def same_point(gold: Form, given: Form, leaf: Leaf) -> bool:
    """Is `y = 2, x = 1` the point (1, 2)? The coordinates come in the order of their names."""
    named = sorted(m.groups() for m in map(COORDINATE.fullmatch, given.parts) if m)
    if len({name for name, _ in named}) < len(given.parts):
        return False
    return same_form(gold, Form("tuple", "()", tuple(value for _, value in named)), leaf)


def same_ratio(gold: Form, given: Form) -> bool:
    """Is 3:4 the fraction 3/4, or the reverse? 3:1 is not 3, and 6:30 is not 1/5."""
    ratio, value = (gold, given) if gold.kind == "ratio" else (given, gold)
    number = read_number(value.parts[0])
    if number is None or number.value.denominator == 1:
        return False
    lowest = str(number.value.numerator), str(number.value.denominator)
    return ratio.parts == lowest


def paired(gold: list[str], given: list[str], same: Leaf) -> bool:
    """Can each part of one be given a partner of the other? Equality is an equivalence: greedy."""
    rest = list(given)
    for part in gold:
        partner = next((other for other in rest if same(part, other)), None)
        if partner is None:
            return False
        rest.remove(partner)
    return True


def form_of(text: str) -> Form:
    """The form of one answer, already cleaned."""
    bare = MEMBER.sub("", text.strip())
    for reader in (matrix, solution_set, union, listing, based, bracketed, worded, ratio):
        found = reader(bare)
        if found is not None:
            return found
    unit = UNIT.search(text)
    value = text[: unit.start()] if unit and not changes_value(unit.group()) else text
    return Form("value", "", (value.strip() or text,))


def matrix(text: str) -> Form | None:
    r"""Cells row by row; the mark holds the shape, the kind of brackets does not count."""
    match = MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = [row.split("&") for row in re.split(r"\\\\|\\cr(?![A-Za-z])", match[1]) if row.strip()]
    shape = "x".join(str(len(row)) for row in rows)
    return Form("matrix", shape, tuple(cell.strip() for row in rows for cell in row))


def union(text: str) -> Form | None:
    r"""Intervals joined by `\cup`."""
    parts = split_top(text, {r"\cup"})
    return Form("union", "", tuple(parts)) if len(parts) > 1 else None


def listing(text: str) -> Form | None:
    r"""Several answers without brackets, or a set; `a \pm b` counts as two."""
    wrapped = WRAPPED.fullmatch(text)
    if wrapped:
        return listing(wrapped[1])
    is_set = enclosed(text, r"\{", r"\}")
    inner = text[2:-2] if is_set else text[1:-1] if enclosed(text, "{", "}") else text
    parts = [p for piece in split_top(JOIN.sub(",", inner), {",", ";"}) for p in plus_minus(piece)]
    given = [p for p in parts if p]
    return Form("list", "", tuple(given)) if len(given) > 1 or is_set else None


def bracketed(text: str) -> Form | None:
    """A pair, a point or an interval: the brackets are part of the answer."""
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]":
        return None
    if closing_index(text) != len(text) - 1:
        return None
    inner = text[1:-1]
    pair = inner.count(",") == 1 and ";" not in inner  # [-36,104] has no thousands
    parts = [p.strip() for p in inner.split(",")] if pair else split_top(inner, {",", ";"})
    return Form("tuple", text[0] + text[-1], tuple(parts)) if len(parts) > 1 else None


def based(text: str) -> Form | None:
    """A number written in a base: digits and base are compared as they are."""
    match = BASE.fullmatch(text)
    if match is None or not any(c.isdigit() for c in match[1]):
        return None
    return Form("base", match[1].replace(" ", "") + "_" + match[2].lower(), ())


def ratio(text: str) -> Form | None:
    """a:b, also a time of day."""
    if not RATIO.fullmatch(text) or not all(part.strip() for part in text.split(":")):
        return None
    return Form("ratio", "", tuple(part.strip() for part in text.split(":")))


def worded(text: str) -> Form | None:
    r"""A word or a choice: `(C)`, `\text{even}`, `neither`."""
    match = WORDS.fullmatch(text)
    found = next((g for g in match.groups() if g), "") if match else ""
    letters = word(found)
    if not letters or (any(c.isdigit() for c in letters)):
        return None
    return Form("word", letters, ())


def word(text: str) -> str:
    """Letters and digits in lower case."""
    return "".join(c for c in text.replace(r"\text", "").casefold() if c.isalnum())
