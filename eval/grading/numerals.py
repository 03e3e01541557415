r"""Reads a plain number exactly: integers, decimals, fractions, percents, with units and currency.

A text that is more than one number (an expression, a pair, a ratio, a number in another base) is
not a plain number: `read_number` returns None. No text is evaluated; arithmetic uses `Fraction`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest

from eval.grading.chinese import read_chinese_number, single_number
from eval.grading.cleaning import clean
from eval.grading.units import CURRENCIES, multiplier
from eval.grading.words import in_digits

DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?!\d)|\d+)"
DECIMAL = rf"(?:{DIGITS}(?:\.\d*)?|\.\d+)"
TEN_POWER = (
    r"(?:[eE](?P<e>[+-]?\d{1,3})"
    r"|\s*(?:\\times|\\cdot|\*)\s*10\s*\^\s*+\{?\s*+(?P<ten>[+-]?\d{1,3})\s*+\}?)"
)
NUMBER = re.compile(
    rf"(?P<sign>--(?!\s*-)|[-+]?)\s*+(?:\\?[{CURRENCIES}]\s*+)?(?P<sign2>-?)\s*+(?:"
    rf"(?:(?P<whole>\d+)\s*)?\\frac\s*(?:\{{\s*(?P<n1>-?{DECIMAL})\s*\}}|(?P<n2>\d))"
    rf"\s*(?:\{{\s*(?P<d1>-?{DECIMAL})\s*\}}|(?P<d2>\d+))"
    rf"|(?:(?P<whole2>\d+)\s+)?(?P<n3>{DECIMAL})\s*/\s*(?P<d3>{DECIMAL})"
    rf"|(?P<decimal>{DECIMAL}){TEN_POWER}?)"
    r"(?:\s*(?P<percent>\\?%|\\?text\{\s*(?:\\?%|percent)\s*\}|percent(?:age)?\b))?(?P<tail>.*)",
    re.DOTALL,
)
REPEATING = re.compile(
    r"(?P<sign>-?)(?P<whole>\d*)\.(?P<once>\d*)"
    r"(?:\\(?:overline|bar|dot)\s*(?:\{(?P<over>\d+)\}|(?P<digit>\d))|\((?P<bracketed>\d+)\))"
    r"(?P<percent>\s?\\?%)?"
)
LABEL = re.compile(  # a name, or a calculation with numbers alone; never an equation
    r"(?:\\text\{[^{}]*+\}|[A-Za-z][A-Za-z ']*+|\\[a-z]{2,7}+)(?:_\{?\w+\}?)?(?:\([^()=]{1,20}\))?"
    r"|(?:[\d\s+\-*/().$]|\\times|\\cdot|\\div)++"
)
TERM = re.compile(r"\d+(?:\.\d+)?|\\[a-z]+|[A-Za-z]|[^\s\w(){}*\\]")
TIMES = frozenset((r"\times", r"\cdot"))
NAME = re.compile(r"\s*[A-Za-z]\s*")
LISTED = re.compile(r",(?!\d{3}(?!\d))")
ABOUT = re.compile(
    r"\A(?:[A-Za-z]\s*)?(?:\\(?:approx|sim)(?![A-Za-z])|≈|(?:about|approximately)\b)\s*"
)
FLOAT_DIGITS = 12  # a decimal with at least this many significant digits is a printed float


@dataclass(frozen=True)
class Number:
    """An exact value and how it was written.

    `percent`: a percent sign followed. `places`: digits after the decimal point, None for an
    integer or a fraction. `significant`: significant digits of a decimal, 0 for other numbers.
    """

    value: Fraction
    percent: bool = False
    places: int | None = None
    significant: int = 0


@lru_cache(maxsize=8192)
def read_number(text: str) -> Number | None:
    """Return the number of a text that is one plain number; None for any other text."""
    if text.isdecimal() and text.isascii() and len(text) < 400:
        return Number(Fraction(int(text)))
    if len(text) > 400:
        return None
    cleaned = clean(text)
    bare = strip_label(cleaned)
    number = match_number(bare) or read_repeating_decimal(bare)
    return number or (None if cleaned.isascii() else read_chinese(cleaned))


def read_repeating_decimal(text: str) -> Number | None:
    r"""Return the value of a repeating decimal: `0.1\overline{6}` and 0.1(6) are 1/6."""
    match = REPEATING.fullmatch(text)
    if match is None:
        return None
    cycle = match["over"] or match["digit"] or match["bracketed"]
    shift = 10 ** len(match["once"])
    tail = Fraction(int(cycle), (10 ** len(cycle) - 1) * shift)
    magnitude = Fraction(int(f"{match['whole']}{match['once']}" or 0), shift) + tail
    return Number(-magnitude if match["sign"] else magnitude, percent=bool(match["percent"]))


def read_chinese(text: str) -> Number | None:
    """Return a number in Chinese notation (四分之三), or the only number among Chinese words."""
    chinese = read_chinese_number(text)
    if chinese is not None:
        return Number(chinese[0], percent=chinese[1])
    digits = single_number(text)
    return match_number(digits) if digits else None


def is_label(text: str) -> bool:
    """Return whether each side of an equation is a name or a calculation with numbers.

    The first side may also be an expression with letters if the second is the same expression with
    numbers: 3R - 16 = 3(46) - 16.
    """
    first, *further = [side.strip() for side in text.split("=")]
    label = LABEL.fullmatch(first) or (further and is_substitution(first, further[0]))
    return bool(label) and all(LABEL.fullmatch(side) for side in further)


def is_substitution(expression: str, calculation: str) -> bool:
    """Return whether a calculation is an expression with a number in place of each letter."""
    pairs = list(zip_longest(terms(expression), terms(calculation), fillvalue=""))
    substitutions = {(a, b) for a, b in pairs if a.isalpha() and b[:1].isdigit()}
    is_unique = len(substitutions) == len({letter for letter, _ in substitutions})
    agrees = all(a == b or (a, b) in substitutions for a, b in pairs)
    return bool(substitutions) and is_unique and agrees


def terms(text: str) -> list[str]:
    """Return the numbers, letters, commands and operators of an expression, without times signs."""
    return [term for term in TERM.findall(text) if term not in TIMES]


def strip_label(text: str, predicate: Callable[[str], bool] = is_label) -> str:
    r"""Remove what precedes the last `=` if it is a label of the value: `x = 5` becomes 5.

    `predicate` decides whether a text is a label. The name in `5 = x` and the sign in
    `x \approx 5` are removed too.
    """
    label, equals, right = ABOUT.sub("", text).rpartition("=")
    if not equals:
        return right
    if NAME.fullmatch(right) and "=" not in label:
        return label.strip()
    if label[-1:] in ("<", ">", "!", "\\") or LISTED.search(right):
        return text
    return right.strip() if predicate(label) else text


def match_number(text: str) -> Number | None:
    """Return the number that a text consists of, with an optional unit; None for other texts."""
    match = NUMBER.fullmatch(in_digits(strip_wrapper(text)))
    if match is None:
        return None
    factor = multiplier(match["tail"])
    if factor is None:
        return None
    magnitude = magnitude_of(match)
    if magnitude is None:
        return None
    decimal = match["decimal"] or ""
    places = len(decimal.partition(".")[2]) if "." in decimal else None
    negative = (match["sign"] or match["sign2"]) == "-"
    return Number(
        (-magnitude if negative else magnitude) * factor,
        percent=bool(match["percent"]),
        places=places,
        significant=len(decimal.replace(".", "").replace(",", "").lstrip("0")) if places else 0,
    )


def strip_wrapper(text: str) -> str:
    r"""Remove one `\text{}`, braces or parentheses that enclose the whole text.

    `\text{5 cm}` becomes "5 cm", and (5) becomes "5". Parentheses are removed only from digits with
    an optional minus sign and points, so (x + 1) stays. Braces with braces inside stay too.
    """
    match = re.fullmatch(r"(?:\\text)?\s*\{([^{}]*)\}|\(\s*(-?[\d.]+)\s*\)", text)
    return (match.group(1) or match.group(2) or "").strip() if match else text


def magnitude_of(match: re.Match[str]) -> Fraction | None:
    """Return the value of a match of NUMBER without the sign before it; None if it divides by 0."""
    numerator = first_group(match, "n1", "n2", "n3")
    if numerator is None:
        exponent = int(first_group(match, "e", "ten") or 0)
        return to_fraction(match["decimal"]) * Fraction(10) ** exponent
    denominator = to_fraction(first_group(match, "d1", "d2", "d3") or "")
    if denominator == 0:
        return None
    integer_part = first_group(match, "whole", "whole2") or 0
    return Fraction(int(integer_part)) + to_fraction(numerator) / denominator


def first_group(match: re.Match[str], *names: str) -> str | None:
    """Return the first of the named groups that is not empty; None if all are empty."""
    return next((match[name] for name in names if match[name]), None)


def to_fraction(digits: str) -> Fraction:
    """Return the exact value of a decimal with thousands commas or spaces."""
    return Fraction(digits.replace(",", "").replace(" ", "").rstrip(".") or "0")


def same_number(gold: Number, prediction: Number) -> bool:
    """Return whether two numbers are equal in any notation; a factor of 100 is an error.

    A percent sign alone is no difference (40 and 40%). A percentage equals the fraction of the same
    value (1/4 and 25%, 20% and 0.2), but an integer never equals 100 times itself in percent.
    """
    if gold.percent == prediction.percent:
        return equal_but_for_noise(gold, prediction)
    if prediction.percent and abs(gold.value) < 1 and gold.value != 0:
        return gold.value == prediction.value / 100
    if equal_but_for_noise(gold, prediction):
        return True
    return gold.percent and gold.value / 100 == prediction.value


def equal_but_for_noise(gold: Number, prediction: Number) -> bool:
    """Return whether two values are equal up to float noise: 5 and 5.000000000000002.

    Noise is accepted if one side has at least 12 significant digits and the other is a short
    decimal, so a rounded 0.333333333333 does not equal 1/3.
    """
    if gold.value == prediction.value:
        return True
    is_float = prediction.significant >= FLOAT_DIGITS
    noisy, exact = (prediction, gold) if is_float else (gold, prediction)
    if noisy.significant < FLOAT_DIGITS or exact.significant >= FLOAT_DIGITS:
        return False
    if not is_short_decimal(exact.value):
        return False
    return abs(noisy.value - exact.value) <= Fraction(1, 10**10) * max(1, abs(exact.value))


def is_short_decimal(value: Fraction) -> bool:
    """Return whether a value is a decimal of at most nine places."""
    return 10**9 % value.denominator == 0


@lru_cache(maxsize=1024)  # a text asks for the key of a number several times
def answer_key(text: str) -> str:
    """Return a key that is equal for equal answers: plain numbers by value, others by notation."""
    number = read_number(text)
    return str(number.value) if number else clean(text).replace(" ", "")
