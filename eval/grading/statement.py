r"""Reads the answer that a sentence states in words; ambiguous sentences give none.

A statement that is itself an answer is returned unchanged. From a sentence the answer is, in this
order: its only number or formula; the text after its last `=`; the number that the text before it
computed last; the only number that is more than a duration, a recipient and the like; else none.
"""

import re
from itertools import takewhile

from eval.grading.numerals import answer_key, read_number
from eval.grading.quantities import (
    FORMULA,
    NO,
    Quantity,
    content,
    first_number,
    quantities,
    without_delimiters,
)
from eval.grading.units import LETTERS, changes_value
from eval.grading.words import MINUS, in_digits

TITLES = "".join(
    rf"(?<!\b{word}[.!?])"
    for word in (
        *(
            "Mr",
            "Mrs",
            "Ms",
            "Dr",
            "St",
            "Jr",
            "Sr",
            "Prof",
            "vs",
            "Rs",
            "Sh",
            "Ksh",
            "Tsh",
            "Tk",
            "Rp",
            "approx",
            "ca",
            "bzw",
        ),
        *(r"[ap]\.m", r"e\.g", r"i\.e", r"z\.B"),
    )
)
SENTENCE_END = re.compile(  # its first character decides alone: most characters end no sentence
    rf"[.!?。！？।\n](?:(?<=[。！？।\n])|{TITLES}(?<!\\[.!?])(?:\s|$))"
)
REASON = re.compile(r",?\s+(?:because|since|as|which|where|when|so|given)\s|;\s(?=[A-Za-z]{2})")
EQUALS = re.compile(r"(?<![<>!\\])=|\\approx(?![A-Za-z])|≈")
ASIDE = re.compile(
    r"\s\((?=[^()\\$]*[A-Za-z]{3})[^()\\$]*+\)|(?<=[A-Za-z]{2})\s\([\d\s.,$]*[-+*/×÷=][\d\s.,$+*/×÷=-]*\)"
)
CONTRAST = re.compile(
    rf"{NO}.*?(?:\b(?:but|rather|instead|it is|it['’]s|sondern|mais|а)\b|而是)", re.IGNORECASE
)
EXCLUDED = re.compile(  # 42, not 41
    r",\s(?:(?:and|but|und|et|y)\s)?(?:not|nicht|no|non|pas)\s[$€£]?\d[\d.,]*"
    r"(?![^.!?\n]{0,80}\b(?:but|rather|instead|sondern|mais)\b)"
    r"|\bnot\s\d{1,3}\s?%\s(?:sure|certain|confident)",
    re.IGNORECASE,
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
    """Return the first sentence of a text."""
    return SENTENCE_END.split(text.lstrip(), maxsplit=1)[0].strip(" *")


def is_answer(text: str) -> bool:
    """Return whether a text is itself an answer: a number with unit, a formula, a list, a word."""
    if read_number(text) is not None:
        return True
    prose = [w for w in WORD.findall(QUOTED.sub("", text)) if w.casefold() not in NO_PROSE]
    return not prose or (len(prose) == 1 and not any(map(str.isdigit, text)))


def first_answer(text: str) -> str | None:
    """Return the answer that a text begins with: a formula, equations or a sentence; else None."""
    formula = FORMULA.match(text.lstrip())
    unit = sentence(text.lstrip()[formula.end() :]) if formula else ""
    if formula and not quantities(unit) and not changes_value(unit):
        return content(formula)
    lines = without_delimiters(text).lstrip().split("\n")
    equations = list(takewhile(EQUALS.search, lines))
    head = REASON.split(sentence(equations[-1] if equations else lines[0]), maxsplit=1)[0]
    return head if head and is_answer(head) else None


def stated_answer(text: str, before: str = "") -> str | None:
    """Return the answer that a text states: "" if it is ambiguous, None if there is no number.

    `before` is the text that precedes it.
    """
    conclusions = list(CONCLUSION.finditer(text))
    if conclusions and quantities(text[(last := conclusions[-1]).end() :]):
        return choose_quantity(text[last.end() :], before + text[: last.start()])
    return choose_quantity(text, before)


def choose_quantity(text: str, before: str) -> str | None:
    """Return the quantity of a statement that is its answer, see `stated_answer`."""
    statement = MINUS.sub("-", CONTRAST.sub("", EXCLUDED.sub("", text)))
    candidates = quantities_of(statement)
    if not candidates:
        return None
    clear = {candidate.key: candidate.text for candidate in candidates if candidate.clear}
    if len({candidate.key for candidate in candidates}) == 1:
        return next(iter(clear.values()), "")
    right_side = after_equals(statement)
    if right_side is not None and not candidates[-1].together:
        return right_side
    computed = answer_key(after_equals(before) or "")
    return clear[computed] if computed in clear else principal_text(candidates, clear)


def quantities_of(statement: str) -> list[Quantity]:
    """Return the quantities of a statement outside parentheses, else all, else those in words."""
    return (
        quantities(ASIDE.sub("", statement))
        or quantities(statement)
        or quantities(in_digits(THAT_ONE.sub("", statement)))
    )


def principal_text(candidates: list[Quantity], clear: dict[str, str]) -> str:
    """Return the text of the only value that is not incidental; "" if none or several are not.

    `clear` maps the keys of the candidates that can be answers to their texts.
    """
    principal = {candidate.key for candidate in candidates if not candidate.incidental}
    return clear.get(principal.pop(), "") if len(principal) == 1 else ""


def after_equals(text: str) -> str | None:
    """Return the rest of the sentence after the last `=`, or the number there; None without `=`."""
    bare = without_delimiters(text)
    marks = list(EQUALS.finditer(bare))
    if not marks:
        return None
    right_side = bare[marks[-1].end() :]
    statement = sentence(right_side)
    return statement if statement and is_answer(statement) else first_number(right_side)
