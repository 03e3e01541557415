"""Converts numbers in English words: three, twenty-one, two thirds, two and a half."""

import re
from fractions import Fraction

ONE_TO_NINETEEN = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
DECADES = "twenty thirty forty fifty sixty seventy eighty ninety"
FOURTH_TO_TWELFTH = "fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ONES = {"zero": 0} | {w: n for n, w in enumerate(ONE_TO_NINETEEN.split(), start=1)}
TENS = {word: 10 * n for n, word in enumerate(DECADES.split(), start=2)}
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
PARTS = {"half": 2, "third": 3, "quarter": 4, "hundredth": 100} | {
    word: n for n, word in enumerate(FOURTH_TO_TWELFTH.split(), start=4)
}
DIGIT = rf"(?:{'|'.join(ONE_TO_NINETEEN.split()[:9])})\b"
SMALL = rf"(?:(?:{'|'.join(TENS)})(?:[\s-]{DIGIT})?|(?:{'|'.join(ONES)}))\b"
HUNDREDS = rf"(?:(?:{SMALL}|a)\shundred\b(?:\s(?:and\s)?{SMALL})?|{SMALL})"
CARDINAL = (
    rf"(?:(?:(?:{HUNDREDS}|a)\s(?:thousand|million|billion)\b,?\s?(?:and\s)?)+{HUNDREDS}?"
    rf"|a\sdozen\b|{HUNDREDS})"
)
PART = rf"(?:halves|(?:{'|'.join(PARTS)})s?)\b"
SPELLED = re.compile(
    rf"(?<![\w-])(?P<minus>(?:negative|minus)\s(?=\$?\d|[a-z]))?"
    rf"(?:(?P<whole>{CARDINAL}|\d+)\sand\s(?P<more>an?\b|{SMALL})[\s-](?P<fraction>{PART})"
    rf"|(?P<n>an?\b|{SMALL})[\s-](?P<part>{PART})"
    rf"|(?P<half>half)\b"
    rf"|(?P<cardinal>{CARDINAL}))(?!\w)",
    re.IGNORECASE,
)
MINUS = re.compile(r"(?<![\w)-])(?:negative|\Aminus)\s(?=\$?\.?\d)", re.IGNORECASE)


def in_digits(text: str) -> str:
    """Return the text with every number in words written in digits: "2/3" for two thirds."""
    return SPELLED.sub(to_digits, MINUS.sub("-", text))


def to_digits(match: re.Match[str]) -> str:
    """Return the digits of a match of SPELLED."""
    groups = {name: (word or "").lower() for name, word in match.groupdict().items()}
    magnitude = magnitude_of(groups)
    return str(-magnitude if match["minus"] else magnitude)


def magnitude_of(groups: dict[str, str]) -> Fraction:
    """Return the absolute value of the groups of a match of SPELLED."""
    if groups["half"]:
        return Fraction(1, 2)
    if groups["cardinal"]:
        return Fraction(cardinal(groups["cardinal"]))
    integer_part = cardinal(groups["whole"]) if groups["whole"] else 0
    numerator, part = groups["more"] or groups["n"], groups["fraction"] or groups["part"]
    denominator = 2 if part == "halves" else PARTS[part.rstrip("s")]
    return integer_part + Fraction(cardinal(numerator), denominator)


def cardinal(text: str) -> int:
    """Return the integer of a cardinal number in words or digits."""
    if text.isdigit():
        return int(text)
    if text.endswith("dozen"):
        return 12
    total = section = 0
    for word in re.findall(r"[a-z]+", text):
        if word == "hundred":
            section *= 100
        elif word in SCALES:
            total, section = total + section * SCALES[word], 0
        elif word != "and":
            section += 1 if word in ("a", "an") else ONES.get(word, 0) + TENS.get(word, 0)
    return total + section
