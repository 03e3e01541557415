r"""Finds the numbers and formulas of a sentence and classifies them by the words around them."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter

from eval.grading.numerals import answer_key
from eval.grading.units import BOUNDS, CURRENCIES, DENIALS

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
    rf"\s?(?:{BOUNDS}|{DENIALS})"
    r"|\s?[\^!π√±<>≤≥+*×÷\\=万亿億兆]|\(|\s?[-−]\s?\w\b"
    r"|\s(?:(?:third|fourth|fifth|ten|tenth|hundred|hundredth|thousandth)s|halves|squared|cubed)\b"
)
AFTER_OPERATOR = re.compile(r"[\^π√±<>≤≥+*×÷)]\s?\Z|(?<![A-Za-z])[a-z]\s?[-−]\s?\Z")
LIMITED = re.compile(
    r"\b(?:than|least|most|between|either|neither|nor|below|above|under|up to"
    r"|(?:half|thirds?|quarters?|root|square) of|twice|double"
    r"|(?:plus|moins|moitié|double|tiers) de|au (?:moins|plus)"
    r"|(?:mehr|weniger) als|mindestens|höchstens|Hälfte von|Doppelte von"
    r"|(?:más|menos|mitad|doble) de|al menos|больше|меньше|более|менее|половин[аы] от"
    r"|(?:zaidi|chini|nusu) ya)\s(?:\w+\s){0,2}\Z"
    r"|(?:มากกว่า|น้อยกว่า|[大小多少高低]于|超过)\s?\Z",
    re.IGNORECASE,
)
NO = r"(?:\b(?:not|never|cannot|nicht|kein\w*+|pas|не|no es)\b|n['’]t\b|不)"
DENIED = re.compile(rf"(?:{NO}|ไม่ใช่)(?:\s\w+){{0,2}}\s?\Z", re.IGNORECASE)
INCIDENTAL = re.compile(  # for 16 glasses, from 1:00 PM to 5:00 PM
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
    """A number or a formula in a sentence.

    `plain`: it is not part of a longer formula, and neither negated nor a limit ("at most 5").
    `incidental`: it only states a duration, a recipient and the like ("for 16 glasses").
    `together`: it is one of several in an enumeration.
    """

    text: str
    start: int
    end: int
    plain: bool = True
    incidental: bool = False
    together: bool = False

    @property
    def clear(self) -> bool:
        """True if the quantity can be an answer by itself."""
        return self.plain and not self.together

    @property
    def key(self) -> str:
        """A key that quantities of equal value share."""
        return answer_key(self.text)


def content(formula: re.Match[str]) -> str:
    """Return a formula without its delimiters."""
    return (formula[1] or formula[2] or formula[3]).strip()


def without_delimiters(text: str) -> str:
    """Return the text without the delimiters of its formulas."""
    return FORMULA.sub(content, text) if "$" in text or "\\" in text else text


def quantities(text: str) -> list[Quantity]:
    """Return the numbers and formulas of a text in order, except ordinals and step numbers."""
    masked = FORMULA.sub(lambda m: "_" * len(m.group()), text)
    formulas = [quantity(masked, m.span(), content(m)) for m in FORMULA.finditer(text)]
    numbers = [
        quantity(masked, m.span(), without_label(m))
        for m in QUANTITY.finditer(masked)
        if not is_label(masked, m)
    ]
    ordered = sorted([*formulas, *numbers], key=attrgetter("start"))
    together = {
        neighbour
        for pair in pairwise(ordered)
        for neighbour in pair
        if TOGETHER.fullmatch(text, pair[0].end, pair[1].start)
    }
    return [replace(number, together=number in together) for number in ordered]


def is_label(text: str, match: re.Match[str]) -> bool:
    """Return whether a match of QUANTITY is an ordinal, part of a word or the number of a step."""
    sign = match["label"]
    if sign in (".", ")", ":"):
        before = text[: match.start()].rstrip(" *-")[-5:].casefold()
        return not before or before.endswith(("\n", "step", "part"))
    return sign == "-" or ORDINAL.fullmatch(match.group()) is not None


def quantity(masked: str, span: tuple[int, int], text: str) -> Quantity:
    """Return the quantity `text` at a span of a sentence, classified by the words around it.

    `masked` is the sentence with its formulas masked.
    """
    before, after = masked[max(0, span[0] - 60) : span[0]], masked[span[1] : span[1] + 20]
    return Quantity(text, *span, *plain_and_incidental(before, after))


@lru_cache(maxsize=1024)  # texts that repeat themselves ask the same again and again
def plain_and_incidental(before: str, after: str) -> tuple[bool, bool]:
    """Return the fields of a `Quantity` that follow from the words around it."""
    signs = (LIMITED, DENIED, AFTER_OPERATOR)
    plain = not (IN_FORMULA.match(after) or any(sign.search(before) for sign in signs))
    return plain, INCIDENTAL.search(before) is not None


def without_label(match: re.Match[str]) -> str:
    """Return the number of a match of QUANTITY without the sign that follows a label."""
    return match.group().removesuffix(match["label"] or "").strip()


def first_number(text: str) -> str | None:
    """Return the number at the beginning of a text; None if it begins otherwise."""
    match = QUANTITY.match(text.lstrip(" *"))
    return without_label(match) if match else None
