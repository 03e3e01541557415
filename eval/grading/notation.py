r"""Writes the numbers of a text the English way, by the rules of the language that it is in.

1.234,5 is 1234.5 in German and Spanish, 1 234,5 in French and Russian, and ১,২৩,৪৫৬ is 123456 in
Bengali. The language decides: 1.000 is 1000 in German and 1 in English. What no rule of the
language reads, as 1,234.5 in German, stays as it is. So does 1,500 in a text that shows no decimal
comma elsewhere: models group digits in the English way in every language.
"""

import re
import unicodedata

from eval.grading.scales import without_scales

SPACES = " \u00a0\u2009\u202f"
APART = r"(?<![\w.,]){}(?![.,]?\d)"  # a number that no other digit touches


def with_comma(groups: str) -> re.Pattern[str]:
    """Numbers with a decimal comma, whose digits one of these characters may group."""
    grouped = rf"(?P<whole>[1-9]\d{{0,2}}(?P<g>[{groups}])\d{{3}}(?:(?P=g)\d{{3}})*|\d+(?=,))"
    return re.compile(APART.format(rf"{grouped}(?:,(?P<decimals>\d+))?"))


ENGLISH = re.compile(r"[1-9]\d{0,2},\d{3}")
GROUPED_BY_TWO = re.compile(APART.format(r"(?P<whole>\d{1,2}(?:,\d\d)+,\d{3})(?P<decimals>(?!))?"))
NUMBERS = {
    "bn": GROUPED_BY_TWO,
    "de": with_comma(f".'’{SPACES}"),
    "es": with_comma(f".{SPACES}"),
    "fr": with_comma(SPACES),
    "ru": with_comma(SPACES),
    "te": GROUPED_BY_TWO,
}
SCALES = {
    language: re.compile(
        rf"(?<=\d)\s*(?:(?P<thousand>{thousand})|(?P<million>{million})|(?P<billion>{billion}))\b",
        re.IGNORECASE,
    )
    for language, thousand, million, billion in (
        ("de", "tausend", "millionen|million|mio", "milliarden?|mrd"),
        ("es", "mil", "millones|millón", "mil millones"),
        ("fr", "mille", "millions?", "milliards?"),
        ("ru", "тысяч[аи]?|тыс", "миллион(?:а|ов)?|млн", "миллиард(?:а|ов)?|млрд"),
    )
}
VULGAR = re.compile(r"(?P<whole>\d?)(?P<sign>[¼-¾⅐-⅞])")
OTHER_DIGIT = re.compile(r"(?![0-9])\d")
LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|,\\!)\s*(?=\d)")
LATEX_SPACE = re.compile(r"(?<=\d)\\,(?=\d{3}(?!\d))")


def in_english(text: str, language: str) -> str:
    """The text with ASCII digits, commas alone to group them, a decimal point, and `million`."""
    plain = without_scales(text if text.isascii() else in_ascii(text))
    if "\\" in plain or "{,}" in plain:
        plain = LATEX_SPACE.sub("", LATEX_COMMA.sub(",", plain))
    numbers, scales = NUMBERS.get(language), SCALES.get(language)
    points = with_points(plain, numbers) if numbers else plain
    return scales.sub(lambda found: f" {found.lastgroup}", points) if scales else points


def in_ascii(text: str) -> str:
    """The text with ASCII digits, also in fractions that are one character."""
    digits = OTHER_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    return VULGAR.sub(fraction, digits)


def fraction(match: re.Match[str]) -> str:
    """1 1/2 for 1½."""
    digits = unicodedata.normalize("NFKC", match["sign"]).replace("\u2044", "/")
    return f"{match['whole']} {digits}" if match["whole"] else digits


def with_points(text: str, numbers: re.Pattern[str]) -> str:
    """The text with the numbers that a pattern finds written the English way."""
    found = list(numbers.finditer(text))
    if all(map(groups_by_comma, found)):
        return text
    return numbers.sub(written, text)


def groups_by_comma(match: re.Match[str]) -> bool:
    """Can the comma of a number, as that of 1,500, be there to group its digits?"""
    return ENGLISH.fullmatch(match.group()) is not None


def written(match: re.Match[str]) -> str:
    """A number's digits, with a point before the decimals."""
    whole = re.sub(r"\D", "", match["whole"])
    return f"{whole}.{match['decimals']}" if match["decimals"] else whole
