r"""Converts the numbers of a text to English notation, by the rules of the text's language.

1.234,5 is 1234.5 in German and Spanish, 1 234,5 in French and Russian, and ১,২৩,৪৫৬ is 123456 in
Bengali. The language decides: 1.000 is 1000 in German and 1 in English. A number that the language
has no rule for, as 1,234.5 in German, is left unchanged. So is 1,500 in a text without any decimal
comma: models group digits in the English way in every language.
"""

import re
import unicodedata

from eval.grading.scales import without_scales

SPACES = " \u00a0\u2009\u202f"
APART = r"(?<![\w.,]){}(?![.,]?\d)"  # a number with no further digits next to it


def decimal_comma_pattern(groups: str) -> re.Pattern[str]:
    """Return the pattern of numbers with a decimal comma and digits grouped by one of `groups`."""
    grouped = rf"(?P<whole>[1-9]\d{{0,2}}(?P<g>[{groups}])\d{{3}}(?:(?P=g)\d{{3}})*|\d+(?=,))"
    return re.compile(APART.format(rf"{grouped}(?:,(?P<decimals>\d+))?"))


ENGLISH = re.compile(r"[1-9]\d{0,2},\d{3}")
GROUPED_BY_TWO = re.compile(APART.format(r"(?P<whole>\d{1,2}(?:,\d\d)+,\d{3})(?P<decimals>(?!))?"))
NUMBERS = {
    "bn": GROUPED_BY_TWO,
    "de": decimal_comma_pattern(f".'’{SPACES}"),
    "es": decimal_comma_pattern(f".{SPACES}"),
    "fr": decimal_comma_pattern(SPACES),
    "ru": decimal_comma_pattern(SPACES),
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
ARABIC_SIGN = re.compile("(?<=[0-9])[\u066b\u066c](?=[0-9])")  # of decimals and of thousands
OTHER_DIGIT = re.compile(r"(?![0-9])\d")
HALF_MORE = re.compile(  # 5 heures et demie
    r"(?<![\d.,/])(\d{1,9})(\s[^\W\d_]{1,12})?\s(?:et\sdemie?|y\smedi[oa]|с\sполовиной|na\snusu)(?!\w)"
)
LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|,\\!)\s*(?=\d)")
LATEX_SPACE = re.compile(r"(?<=\d)\\,(?=\d{3}(?!\d))")


def in_english(text: str, language: str) -> str:
    """Return the text with its numbers in English notation.

    Digits are ASCII, a comma only groups digits, a point precedes decimals, and words of magnitude
    become digits or, after a number, the English ones such as "million".
    """
    plain = without_scales(text if text.isascii() else in_ascii(text))
    if "\\" in plain or "{,}" in plain:
        plain = LATEX_SPACE.sub("", LATEX_COMMA.sub(",", plain))
    numbers, scales = NUMBERS.get(language), SCALES.get(language)
    converted = HALF_MORE.sub(r"\1.5\2", convert_numbers(plain, numbers) if numbers else plain)
    return scales.sub(lambda match: f" {match.lastgroup}", converted) if scales else converted


def in_ascii(text: str) -> str:
    """Return the text with ASCII digits; other characters stay as they are.

    A single-character fraction becomes digits with a slash: ½ is "1/2", and 1½ is "1 1/2".
    """
    digits = OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)
    if "\u066b" in digits or "\u066c" in digits:
        digits = ARABIC_SIGN.sub(lambda match: "." if match[0] == "\u066b" else ",", digits)
    return VULGAR.sub(expand_fraction, digits)


def expand_fraction(match: re.Match[str]) -> str:
    """Return a match of VULGAR with a slash: "1 1/2" for 1½."""
    digits = unicodedata.normalize("NFKC", match["sign"]).replace("\u2044", "/")
    return f"{match['whole']} {digits}" if match["whole"] else digits


def convert_numbers(text: str, numbers: re.Pattern[str]) -> str:
    """Convert the numbers that a pattern matches to English notation.

    The text is returned unchanged if every number may already be in English notation.
    """
    if all(map(groups_by_comma, numbers.finditer(text))):
        return text
    return numbers.sub(to_english, text)


def groups_by_comma(match: re.Match[str]) -> bool:
    """Return whether the comma of a number can group its digits, as in 1,500."""
    return ENGLISH.fullmatch(match.group()) is not None


def to_english(match: re.Match[str]) -> str:
    """Return the digits of a number without grouping, and with a point before its decimals."""
    integer_part = re.sub(r"\D", "", match["whole"])
    return f"{integer_part}.{match['decimals']}" if match["decimals"] else integer_part
