r"""Reads the answer that a sentence states in words, and does not guess.

A statement that is itself an answer is taken as it is. Of a sentence it is the only number or
formula; else what stands after its last `=`; else that one of its numbers which the text before
computed last; else the only one that says more than for how many or after how long; else nothing.
"""

import re
from itertools import takewhile

from eval.grading.numerals import answer_key, read_number
from eval.grading.quantities import (
    FORMULA,
    NO,
    content,
    first_number,
    quantities,
    without_delimiters,
)
from eval.grading.units import LETTERS, changes_value
from eval.grading.words import MINUS, in_digits

TITLES = "".join(
    rf"(?<!\b{word})"
    for word in (
        *("Mr", "Mrs", "Ms", "Dr", "St", "Jr", "Sr", "Prof", "vs", "approx", "ca", "bzw"),
        *(r"[ap]\.m", r"e\.g", r"i\.e", r"z\.B"),
    )
)
SENTENCE_END = re.compile(rf"{TITLES}(?<!\\)[.!?](?:\s|$)|[。！？।\n]")
REASON = re.compile(r",?\s+(?:because|since|as|which|where|when|so|given)\s|;\s(?=[A-Za-z]{2})")
EQUALS = re.compile(r"(?<![<>!\\])=|\\approx(?![A-Za-z])|≈")
ASIDE = re.compile(r"\s\((?=[^()\\$]*[A-Za-z]{3})[^()\\$]*+\)")
CONTRAST = re.compile(
    rf"{NO}.*?(?:\b(?:but|rather|instead|it is|it['’]s|sondern|mais|а)\b|而是)", re.IGNORECASE
)
THAT_ONE = re.compile(
    r"\b(?:no|which|right|correct|each|every|any|this|that|the|other|only)\sone\b", re.IGNORECASE
)
CONCLUSION = re.compile(
    r"(?:\A|[.!?]\s|\n)\s*(?:therefore|thus|hence|so|in total|altogether|in conclusion)\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"\\(?:text\w*|mbox|mathrm|operatorname|begin|end)\s*\{[^{}]*\}")
WORD = re.compile(rf"(?<![\\A-Za-z])(?:(?![\d_])[\w{LETTERS}]){{2,}}")
IN_FORMULAS = "and or und oder et ou и или sin cos tan cot sec csc log ln sqrt pi"
NO_PROSE = frozenset(IN_FORMULAS.split())


def sentence(text: str) -> str:
    """The first sentence of a text."""
    return SENTENCE_END.split(text.lstrip(), maxsplit=1)[0].strip(" *")


def is_answer(text: str) -> bool:
    """Is the text itself an answer: a number with its unit, a formula, a list or one word?"""
    if read_number(text) is not None:
        return True
    words = [w for w in WORD.findall(QUOTED.sub("", text)) if w.casefold() not in NO_PROSE]
    return not words or (len(words) == 1 and not any(map(str.isdigit, text)))


def first_answer(text: str) -> str | None:
    """The formula, the equations or the sentence that a text begins with, if it is an answer."""
    formula = FORMULA.match(text.lstrip())
    unit = sentence(text.lstrip()[formula.end() :]) if formula else ""
    if formula and not quantities(unit) and not changes_value(unit):
        return content(formula)
    lines = without_delimiters(text).lstrip().split("\n")
    equations = list(takewhile(EQUALS.search, lines))
    head = REASON.split(sentence(equations[-1] if equations else lines[0]), maxsplit=1)[0]
    return head if head and is_answer(head) else None


def stated(text: str, before: str = "") -> str | None:
    """The answer that a text states after `before`: empty if it is not clear, None without any."""
    conclusions = list(CONCLUSION.finditer(text))
    if conclusions and quantities(text[(last := conclusions[-1]).end() :]):
        return chosen(text[last.end() :], before + text[: last.start()])
    return chosen(text, before)


def chosen(text: str, before: str) -> str | None:
    """The quantity of a statement that is its answer, by the rule above."""
    said = MINUS.sub("-", CONTRAST.sub("", text))
    found = quantities(ASIDE.sub("", said)) or quantities(said)
    found = found or quantities(in_digits(THAT_ONE.sub("", said)))
    if not found:
        return None
    clear = {one.key: one.text for one in found if one.clear}
    if len({one.key for one in found}) == 1:
        return next(iter(clear.values()), "")
    result = after_equals(said)
    if result is not None and not found[-1].together:
        return result
    computed = answer_key(after_equals(before) or "")
    principal = {one.key for one in found if not one.given}
    key = computed if computed in clear or len(principal) != 1 else principal.pop()
    return clear.get(key, "")


def after_equals(text: str) -> str | None:
    """What stands after the last `=`: the rest of its sentence, or the number that begins it."""
    bare = without_delimiters(text)
    marks = list(EQUALS.finditer(bare))
    if not marks:
        return None
    rest = bare[marks[-1].end() :]
    whole = sentence(rest)
    return whole if whole and is_answer(whole) else first_number(rest)
