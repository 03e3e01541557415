r"""Reads a plain number exactly: integers, decimals, fractions, percents, with units and currency.

A text that is anything more than one number (an expression, a pair, a ratio, a number in another
base) is not read here and gives None. No text is evaluated; the arithmetic is `Fraction`'s.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest

from eval.grading.chinese import chinese_number, only_number
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
    rf"(?P<sign>[-+]?)\s*+(?:\\?[{CURRENCIES}]\s*+)?(?P<sign2>-?)\s*+(?:"
    rf"(?:(?P<whole>\d+)\s*)?\\frac\s*(?:\{{\s*(?P<n1>-?{DECIMAL})\s*\}}|(?P<n2>\d))"
    rf"\s*(?:\{{\s*(?P<d1>-?{DECIMAL})\s*\}}|(?P<d2>\d+))"
    rf"|(?:(?P<whole2>\d+)\s+)?(?P<n3>{DECIMAL})\s*/\s*(?P<d3>{DECIMAL})"
    rf"|(?P<decimal>{DECIMAL}){TEN_POWER}?)"
    r"(?:\s*(?P<percent>\\?%|\\?text\{\s*\\?%\s*\}|percent(?:age)?\b))?(?P<tail>.*)",
    re.DOTALL,
)
REPEATING = re.compile(
    r"(?P<sign>-?)(?P<whole>\d*)\.(?P<once>\d*)"
    r"(?:\\(?:overline|bar|dot)\s*\{(?P<over>\d+)\}|\((?P<bracketed>\d+)\))"
)
LABEL = re.compile(  # a name, or a calculation with numbers only; an equation is no label
    r"(?:\\text\{[^{}]*+\}|[A-Za-z][A-Za-z ']*+|\\[a-z]{2,7}+)(?:_\{?\w+\}?)?(?:\([^()=]{1,20}\))?"
    r"|(?:[\d\s+\-*/().$]|\\times|\\cdot|\\div)++"
)
TERM = re.compile(r"\d+(?:\.\d+)?|\\[a-z]+|[A-Za-z]|[^\s\w(){}*\\]")
TIMES = frozenset((r"\times", r"\cdot"))
NAME = re.compile(r"\s*[A-Za-z]\s*")
LISTED = re.compile(r",(?!\d{3}(?!\d))")
ABOUT = re.compile(r"\A(?:[A-Za-z]\s*)?(?:\\approx(?![A-Za-z])|≈|(?:about|approximately)\b)\s*")
FLOAT_DIGITS = 12  # a decimal with at least as many significant digits was printed by a float


@dataclass(frozen=True)
class Number:
    """An exact value; `percent` when a percent sign followed; `digits` given after the point."""

    value: Fraction
    percent: bool = False
    places: int | None = None  # None: an integer or a fraction
    significant: int = 0


@lru_cache(maxsize=8192)
def read_number(text: str) -> Number | None:
    """The plain number that `text` is, or None."""
    if text.isdecimal() and text.isascii() and len(text) < 400:
        return Number(Fraction(int(text)))
    if len(text) > 400:
        return None
    cleaned = clean(text)
    bare = unlabelled(cleaned)
    found = match_number(bare) or repeating(bare)
    return found or (None if cleaned.isascii() else from_chinese(cleaned))


def repeating(text: str) -> Number | None:
    r"""`0.1\overline{6}` and 0.1(6) are 1/6."""
    match = REPEATING.fullmatch(text)
    if match is None:
        return None
    cycle = match["over"] or match["bracketed"]
    shift = 10 ** len(match["once"])
    tail = Fraction(int(cycle), (10 ** len(cycle) - 1) * shift)
    value = Fraction(int(f"{match['whole']}{match['once']}" or 0), shift) + tail
    return Number(-value if match["sign"] else value)


def from_chinese(text: str) -> Number | None:
    """A spelled number (四分之三, 百分之二十), or the one number among Chinese words."""
    spelled = chinese_number(text)
    if spelled is not None:
        return Number(spelled[0], percent=spelled[1])
    alone = only_number(text)
    return match_number(alone) if alone else None


def named(text: str) -> bool:
    """Are all sides of it names of a value or calculations with numbers?

    The first may also be an expression into which the second puts numbers: 3R - 16 = 3(46) - 16.
    """
    first, *others = [side.strip() for side in text.split("=")]
    label = LABEL.fullmatch(first) or (others and puts_numbers(first, others[0]))
    return bool(label) and all(LABEL.fullmatch(side) for side in others)


def puts_numbers(expression: str, calculation: str) -> bool:
    """Is the calculation the expression with a number in the place of each letter?"""
    terms = ([t for t in TERM.findall(x) if t not in TIMES] for x in (expression, calculation))
    pairs = list(zip_longest(*terms, fillvalue=""))
    values = {(a, b) for a, b in pairs if a.isalpha() and b[:1].isdigit()}
    one_each = len(values) == len({a for a, _ in values})
    return bool(values) and one_each and all(a == b or (a, b) in values for a, b in pairs)


def unlabelled(text: str, is_label: Callable[[str], bool] = named) -> str:
    r"""Without what stands before a last `=`, when that is a label of the value: `x = 5`.

    Also without the name in `5 = x` and the sign in `x \approx 5`.
    """
    label, equals, value = ABOUT.sub("", text).rpartition("=")
    if not equals:
        return value
    if NAME.fullmatch(value) and "=" not in label:
        return label.strip()
    if label[-1:] in ("<", ">", "!", "\\") or LISTED.search(value):
        return text
    return value.strip() if is_label(label) else text


def match_number(text: str) -> Number | None:
    """The number at the start of `text`, if nothing but a unit follows it."""
    match = NUMBER.fullmatch(in_digits(unwrapped(text)))
    if match is None:
        return None
    factor = multiplier(match["tail"])
    if factor is None:
        return None
    value = value_of(match)
    if value is None:
        return None
    decimal = match["decimal"] or ""
    places = len(decimal.partition(".")[2]) if "." in decimal else None
    negative = "-" in (match["sign"] or match["sign2"] or "")
    return Number(
        (-value if negative else value) * factor,
        percent=bool(match["percent"]),
        places=places,
        significant=len(decimal.replace(".", "").replace(",", "").lstrip("0")) if places else 0,
    )


def unwrapped(text: str) -> str:
    r"""`\text{5 cm}`, `{5}` and `(5)` are 5."""
    match = re.fullmatch(r"(?:\\text)?\s*\{([^{}]*)\}|\(\s*(-?[\d.]+)\s*\)", text)
    return (match.group(1) or match.group(2) or "").strip() if match else text


def value_of(match: re.Match[str]) -> Fraction | None:
    """The absolute value that a match of NUMBER stands for."""
    numerator = match["n1"] or match["n2"] or match["n3"]
    if numerator is None:
        exponent = int(match["e"] or match["ten"] or 0)
        return to_fraction(match["decimal"]) * Fraction(10) ** exponent
    denominator = to_fraction(match["d1"] or match["d2"] or match["d3"])
    if denominator == 0:
        return None
    whole = match["whole"] or match["whole2"]
    return Fraction(int(whole or 0)) + to_fraction(numerator) / denominator


def to_fraction(digits: str) -> Fraction:
    """A decimal literal with thousands commas or spaces, exactly."""
    return Fraction(digits.replace(",", "").replace(" ", "").rstrip(".") or "0")


def same_number(gold: Number, given: Number) -> bool:
    """Equality of value and notation-independence; a factor of 100 is an error.

    A percent sign alone is no error (40 and 40%). A percentage equals the fraction it writes
    (1/4 and 25%, 20% and 0.2), except that an integer answer is never written as 100 times itself.
    """
    if gold.percent == given.percent:
        return close(gold, given)
    if given.percent and abs(gold.value) < 1 and gold.value != 0:
        return gold.value == given.value / 100
    if close(gold, given):
        return True
    return gold.percent and gold.value / 100 == given.value


def close(gold: Number, given: Number) -> bool:
    """Equal, or equal but for float noise: 5 and 5.000000000000002.

    Noise needs at least 12 significant digits on one side and a reference that a short decimal
    writes exactly, so a rounded 0.333333333333 is not 1/3.
    """
    if gold.value == given.value:
        return True
    noisy, other = (given, gold) if given.significant >= FLOAT_DIGITS else (gold, given)
    if noisy.significant < FLOAT_DIGITS or other.significant >= FLOAT_DIGITS:
        return False
    if not terminates(other.value):
        return False
    return abs(noisy.value - other.value) <= Fraction(1, 10**10) * max(1, abs(other.value))


def terminates(value: Fraction) -> bool:
    """Is it a decimal of at most nine places?"""
    return 10**9 % value.denominator == 0


def answer_key(text: str) -> str:
    """Equal for answers that are the same vote: by value for plain numbers, else by notation."""
    number = read_number(text)
    return str(number.value) if number else clean(text).replace(" ", "")
