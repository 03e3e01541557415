r"""Compares answers by their form: tuples, sets, intervals, unions, ratios, matrices, words.

The form decides whether the parts are compared in order, and is itself part of the answer: (1,2) is
not 1,2 and (0,1] is not (0,1). A `leaf` function compares single values.
"""

import re
from collections.abc import Callable, Sequence

from eval.grading.brackets import Form, is_enclosed, plus_minus, split_top
from eval.grading.cleaning import clean
from eval.grading.numerals import read_number
from eval.grading.solution_sets import solution_set
from eval.grading.units import changes_value
from eval.grading.words import in_digits

Leaf = Callable[[str, str], bool]  # (gold, prediction) -> are the two values equal?
UNORDERED = {"list", "union"}
JOIN = re.compile(
    r"\\text\s*\{\s*+,?\s*+(?:and|or|和|或)\s*\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z])|和|或"
)
MEMBER = re.compile(
    r"^\s*(?:(?:[A-Za-z]|\\text\{\w\})(?:\([a-z]\))?|\((?:[A-Za-z]|\\[a-z]+)(?:\s*,\s*(?:[A-Za-z]|\\[a-z]+))+\))\s*"
    r"(?:\\in(?![A-Za-z])|=(?=\s*(?:\(|\[|\\\{|\\begin)))\s*"
)
COORDINATE = re.compile(r"\s*([A-Za-z])\s*=\s*(.+)", re.DOTALL)
BASE = re.compile(
    r"\(?(?P<digits>-?[0-9A-F]+(?:\.[0-9A-F]+)?) ?\)? ?\(?(?:_|(?:in )?base\b) ?\(?(?:base )?"
    r"(?P<base>\w+) ?\)?"
)
RATIO = re.compile(r"[^:]+(?::[^:]+)+")
MATRIX = re.compile(r"\\begin\{[pbB]?(?:matrix|array)\}(?:\{[clr|]*\})?(.*)\\end\{\w+\}", re.DOTALL)
WORDS = re.compile(
    r"\(?\s*\\text\s*\{(?P<text>[^{}]*)\}\s*\)?|(?P<bare>[A-Za-z][a-z]+(?: [A-Za-z]+)*)"
)
UNIT = re.compile(
    r"(?<=[\w}).])\s*\\text\s*\{[^{}]*\}\s*(?:\^\s*\{?\d\}?)?$"
    r"|(?<=[}\w)])\s*\^\s*+\{?\s*+\\circ\s*\}?$"
)
WRAPPED = re.compile(r"\\text\s*\{([^{},;]*+[,;][^{}]*+)\}")


def same_answer(gold: str, prediction: str, leaf: Leaf) -> bool:
    """Return whether two answers have the same form and equal values."""
    return same_form(form_of(clean(gold)), form_of(clean(prediction)), leaf)


def same_form(gold: Form, prediction: Form, leaf: Leaf) -> bool:
    """Return whether two forms are of the same kind with equal parts.

    Some forms of different kinds are equal too, see `MIXED_KINDS`.
    """
    compare_mixed = MIXED_KINDS.get((gold.kind, prediction.kind))
    if compare_mixed:
        return compare_mixed(gold, prediction, leaf)
    if (gold.kind, gold.mark) != (prediction.kind, prediction.mark):
        return False
    if len(gold.parts) != len(prediction.parts):
        return False
    if gold.kind == "value":
        return leaf(gold.parts[0], prediction.parts[0])

    def same_part(a: str, b: str) -> bool:
        return same_form(form_of(a), form_of(b), leaf)

    if gold.kind in UNORDERED:
        return can_be_paired(gold.parts, prediction.parts, same_part)
    return all(same_part(a, b) for a, b in zip(gold.parts, prediction.parts, strict=True))


def as_union(form: Form) -> Form:
    """Return a list of alternative conditions as the union of their intervals; else the form."""
    is_alternatives = form.kind == "list" and all(map(solution_set, form.parts))
    return Form("union", "", form.parts) if is_alternatives else form


def same_union(gold: Form, prediction: Form, leaf: Leaf) -> bool:
    """Return whether a union of intervals equals a list of alternative conditions."""
    unions = as_union(gold), as_union(prediction)
    return unions[0].kind == unions[1].kind and same_form(*unions, leaf)


def same_point(gold: Form, prediction: Form, leaf: Leaf) -> bool:
    """Return whether `y = 2, x = 1` is the point (1, 2), with coordinates sorted by name."""
    coordinates = sorted(m.groups() for m in map(COORDINATE.fullmatch, prediction.parts) if m)
    if len({name for name, _ in coordinates}) < len(prediction.parts):
        return False
    point = Form("tuple", "()", tuple(coordinate for _, coordinate in coordinates))
    return same_form(gold, point, leaf)


def same_ratio(gold: Form, prediction: Form, _leaf: Leaf) -> bool:
    """Return whether a ratio equals a fraction in lowest terms: 3:4 is 3/4, but 6:30 is not 1/5.

    An integer equals no ratio: 3:1 is not 3.
    """
    ratio, fraction = (gold, prediction) if gold.kind == "ratio" else (prediction, gold)
    number = read_number(fraction.parts[0])
    if number is None or number.value.denominator == 1:
        return False
    lowest_terms = str(number.value.numerator), str(number.value.denominator)
    return ratio.parts == lowest_terms


def same_digits(gold: Form, prediction: Form, _leaf: Leaf) -> bool:
    """Return whether a number has the digits of one with a base, which the question may name."""
    return gold.mark.partition("_")[0] == prediction.parts[0]


def word_equals_value(gold: Form, prediction: Form, _leaf: Leaf) -> bool:
    """Return whether a word has the letters and digits of a value."""
    return gold.mark == letters_of(prediction.parts[0])


def letter_equals_word(gold: Form, prediction: Form, _leaf: Leaf) -> bool:
    r"""Return whether a single letter, such as that of a choice, equals a word: `\text{C}`."""
    return len(gold.parts[0]) == 1 and letters_of(gold.parts[0]) == prediction.mark


MIXED_KINDS: dict[tuple[str, str], Callable[[Form, Form, Leaf], bool]] = {
    ("tuple", "list"): same_point,
    ("union", "list"): same_union,
    ("list", "union"): same_union,
    ("value", "ratio"): same_ratio,
    ("ratio", "value"): same_ratio,
    ("base", "value"): same_digits,
    ("word", "value"): word_equals_value,
    ("value", "word"): letter_equals_word,
}


def can_be_paired(gold: Sequence[str], prediction: Sequence[str], same_part: Leaf) -> bool:
    """Return whether each part has a partner of its own; greedy, as equality is transitive."""
    unpaired = list(prediction)
    for part in gold:
        partner = next((other_part for other_part in unpaired if same_part(part, other_part)), None)
        if partner is None:
            return False
        unpaired.remove(partner)
    return True


def form_of(text: str) -> Form:
    """Return the form of one answer that is already cleaned; "value" if no other form fits."""
    bare = MEMBER.sub("", text.strip())
    readers = (matrix, solution_set, union, listing, number_in_base, bracketed_parts, plain_word)
    for reader in (*readers, ratio):
        form = reader(bare)
        if form is not None:
            return form
    unit = UNIT.search(text)
    single = text[: unit.start()] if unit and not changes_value(unit.group()) else text
    return Form("value", "", (single.strip() or text,))


def matrix(text: str) -> Form | None:
    r"""Return the form of a matrix, its cells row by row; else None.

    The mark holds the shape. The kind of brackets is ignored.
    """
    is_inner = any(is_enclosed(text, *pair) for pair in ("()", "[]"))
    match = MATRIX.fullmatch(text[1:-1].strip() if is_inner else text)
    if match is None:
        return None
    rows = [row.split("&") for row in re.split(r"\\\\|\\cr(?![A-Za-z])", match[1]) if row.strip()]
    shape = "x".join(str(len(row)) for row in rows)
    return Form("matrix", shape, tuple(cell.strip() for row in rows for cell in row))


def union(text: str) -> Form | None:
    r"""Return the form of intervals joined by `\cup`; else None."""
    parts = split_top(text, {r"\cup"})
    return Form("union", "", tuple(parts)) if len(parts) > 1 else None


def listing(text: str) -> Form | None:
    r"""Return the form of a set or of several answers without brackets; else None.

    `a \pm b` counts as two answers.
    """
    wrapped = WRAPPED.fullmatch(text)
    if wrapped:
        return listing(wrapped[1])
    is_set = is_enclosed(text, r"\{", r"\}")
    inner = text[2:-2] if is_set else text[1:-1] if is_enclosed(text, "{", "}") else text
    parts = [p for piece in split_top(JOIN.sub(",", inner), {",", ";"}) for p in plus_minus(piece)]
    nonempty = [p for p in parts if p]
    return Form("list", "", tuple(nonempty)) if len(nonempty) > 1 or is_set else None


def bracketed_parts(text: str) -> Form | None:
    """Return the form of a pair, a point or an interval; else None. The mark holds the brackets."""
    if not any(is_enclosed(text, opening, closing) for opening in "([" for closing in ")]"):
        return None
    inner = text[1:-1]
    is_pair = inner.count(",") == 1 and ";" not in inner  # [-36,104] has no thousands comma
    parts = [p.strip() for p in inner.split(",")] if is_pair else split_top(inner, {",", ";"})
    return Form("tuple", text[0] + text[-1], tuple(parts)) if len(parts) > 1 else None


def number_in_base(text: str) -> Form | None:
    """Return the form of a number written in a base, None if the text is no such number.

    The mark of the form is `digits_base`. Digits are not checked against the base.
    """
    match = BASE.fullmatch(" ".join(re.sub(r"\\text|[{}]", " ", text).split()))
    if match is None or not any(c.isdigit() for c in match["digits"]):
        return None
    return Form("base", f"{match['digits']}_{in_digits(match['base']).lower()}", ())


def ratio(text: str) -> Form | None:
    """Return the form of a ratio a:b or a time of day; else None."""
    if not RATIO.fullmatch(text) or not all(part.strip() for part in text.split(":")):
        return None
    return Form("ratio", "", tuple(part.strip() for part in text.split(":")))


def plain_word(text: str) -> Form | None:
    r"""Return the form of a word, such as `even` or `\text{(C)}`; else None."""
    match = WORDS.fullmatch(text)
    content = next((g for g in match.groups() if g), "") if match else ""
    letters = letters_of(content)
    if not letters or (any(c.isdigit() for c in letters)):
        return None
    return Form("word", letters, ())


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return "".join(c for c in text.replace(r"\text", "").casefold() if c.isalnum())
