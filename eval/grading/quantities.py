r"""Finds the numbers and formulas in a sentence, and what the words around each do to it."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from eval.grading.numerals import answer_key
from eval.grading.units import CURRENCIES

FORMULA = re.compile(  # a dollar before a digit ends no formula: $10 + $4 is money
    r"\$\$?((?:\\.|[^$\\])+)\$\$?(?!\d)|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
CURRENCY = rf"(?:\\?[{CURRENCIES}￥]\s?)"
SCALE = r"(?:percent|hundred|thousand|million|billion|trillion|dozen)"
NUMBER = (
    rf"(?>(?:[-−](?={CURRENCY}?[\d.])|(?<=[{CURRENCIES}￥])-)?{CURRENCY}?-?)"
    r"(?:\\frac\s?\{[\d.,]+\}\s?\{[\d.,]+\}|(?:\d{1,3}(?:[,，]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
    r"(?:\s\d+/\d+|(?:\s?[/:]\s?|\sto\s)\d+(?:\.\d+)?)?"
    rf"(?:\s?\\?[%％]|\s{SCALE}\b)?[A-Za-z²³]*+"
)
OPERATOR = r"\s?(?:[+*×÷]|-(?=\s?\d)|−|\bx\b)\s?"
QUANTITY = re.compile(
    rf"(?<![A-Za-z0-9_.,/^:{{\\]){NUMBER}(?:{OPERATOR}{NUMBER})*"
    r"(?P<label>-(?=[A-Za-z])|(?<=\d)[.):](?=\s))?"
)
LAST_NUMBER = re.compile(  # not the exponent of a unit
    rf"(?<![A-Za-z])[A-Za-z]{{2,}}+\}}?\s?\^\s?\{{?\d|(?P<number>(?<![A-Za-z0-9_.,/:]){NUMBER})"
)
ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
IN_FORMULA = re.compile(
    r"\s?[\^!π√±<>≤≥+*×÷\\=万亿億兆]|\(|\s?[-−]\s?\w\b|\s(?:thirds|fourths|fifths|halves)\b"
)
AFTER_OPERATOR = re.compile(r"[\^π√±<>≤≥+*×÷)]\s?\Z|(?<![A-Za-z])[a-z]\s?[-−]\s?\Z")
LIMITED = re.compile(
    r"\b(?:than|least|most|between|either|neither|nor|below|above|under|up to"
    r"|(?:half|thirds?|quarters?|root|square) of|twice|double)\s(?:\w+\s){0,2}\Z",
    re.IGNORECASE,
)
NO = r"(?:\b(?:not|never|cannot|nicht|kein\w*+|pas|не|no es)\b|n['’]t\b|不)"
DENIED = re.compile(rf"{NO}(?:\s\w+){{0,2}}\s?\Z", re.IGNORECASE)
GIVEN = re.compile(  # for 16 glasses, from 1:00 PM to 5:00 PM
    r"\b(?:after|before|during|every|for|from|in|on|over|per|to|until|with|within"
    r"|pendant|durant|après|pour|dans|chaque|nach|für|während|pro|innerhalb|durante|después\sde"
    r"|cada|para|через|после|каждые|для|за)"
    r"\s(?:(?:a|all|each|every|her|his|its|last|next|the|their|these|those|les|ses|den|las|los)\s){0,2}"
    r"\Z",
    re.IGNORECASE,
)
TOGETHER = re.compile(
    r"\s?(?:,|(?:[\w'’]+\s){0,2}(?:and|or|und|oder|et|ou|и|или|和|或|、))\s?(?:[A-Za-z]\s?=\s?)?"
)


@dataclass(frozen=True)
class Quantity:
    """A number or a formula of a sentence.

    It is `plain` when it stands for itself: in no longer formula, neither denied nor a limit;
    `given` when it only says for how many, after how long and the like; and one of several that
    are named `together`.
    """

    text: str
    start: int
    end: int
    plain: bool = True
    given: bool = False
    together: bool = False

    @property
    def clear(self) -> bool:
        """Can it be an answer by itself?"""
        return self.plain and not self.together

    @property
    def key(self) -> str:
        """The same for those of equal value."""
        return answer_key(self.text)


def content(formula: re.Match[str]) -> str:
    """A formula without its delimiters."""
    return (formula[1] or formula[2] or formula[3]).strip()


def without_delimiters(text: str) -> str:
    """The text with its formulas bare."""
    return FORMULA.sub(content, text) if "$" in text or "\\" in text else text


def quantities(text: str) -> list[Quantity]:
    """The numbers and formulas of a text, in order; no ordinals, labels and parts of words."""
    words = FORMULA.sub(lambda m: "_" * len(m.group()), text)
    formulas = [quantity(words, m.span(), content(m)) for m in FORMULA.finditer(text)]
    numbers = [
        quantity(words, m.span(), unlabelled(m))
        for m in QUANTITY.finditer(words)
        if not is_label(words, m)
    ]
    found = sorted([*formulas, *numbers], key=lambda one: one.start)
    together = {
        one
        for pair in pairwise(found)
        for one in pair
        if TOGETHER.fullmatch(text, pair[0].end, pair[1].start)
    }
    return [replace(one, together=one in together) for one in found]


def is_label(text: str, found: re.Match[str]) -> bool:
    """Is it an ordinal, a part of a word or the number of a step: 5th, 12-mile, `3.`?"""
    sign = found["label"]
    if sign in (".", ")", ":"):
        before = text[: found.start()].rstrip(" *-")[-5:].casefold()
        return not before or before.endswith(("\n", "step", "part"))
    return sign == "-" or ORDINAL.fullmatch(found.group()) is not None


def quantity(text: str, span: tuple[int, int], read: str) -> Quantity:
    """What stands in a span of the text, with what the words around it make of it."""
    before, after = text[max(0, span[0] - 60) : span[0]], text[span[1] :][:20]
    signs = (LIMITED, DENIED, AFTER_OPERATOR)
    plain = not (IN_FORMULA.match(after) or any(sign.search(before) for sign in signs))
    return Quantity(read, *span, plain, GIVEN.search(before) is not None)


def unlabelled(found: re.Match[str]) -> str:
    """A match of QUANTITY without the sign that follows a label."""
    return found.group().removesuffix(found["label"] or "").strip()


def first_number(text: str) -> str | None:
    """The number that a text begins with."""
    found = QUANTITY.match(text.lstrip(" *"))
    return unlabelled(found) if found else None
