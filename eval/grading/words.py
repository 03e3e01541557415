"""Numbers in English words: three, twenty-one, two thirds, two and a half, negative five."""

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
    """The text with every number in words as digits: `2/3` for two thirds."""
    return SPELLED.sub(digits, MINUS.sub("-", text))


def digits(match: re.Match[str]) -> str:
    """One number in words."""
    value = value_of({name: (word or "").lower() for name, word in match.groupdict().items()})
    return str(-value if match["minus"] else value)


def value_of(words: dict[str, str]) -> Fraction:
    """The value of the words that a match of SPELLED found."""
    if words["half"]:
        return Fraction(1, 2)
    if words["cardinal"]:
        return Fraction(cardinal(words["cardinal"]))
    whole = cardinal(words["whole"]) if words["whole"] else 0
    numerator, part = words["more"] or words["n"], words["fraction"] or words["part"]
    return whole + Fraction(cardinal(numerator), 2 if part == "halves" else PARTS[part.rstrip("s")])


def cardinal(words: str) -> int:
    """The integer that the words of a CARDINAL count."""
    if words.isdigit():
        return int(words)
    if words.endswith("dozen"):
        return 12
    total = section = 0
    for word in re.findall(r"[a-z]+", words):
        if word == "hundred":
            section *= 100
        elif word in SCALES:
            total, section = total + section * SCALES[word], 0
        elif word != "and":
            section += 1 if word in ("a", "an") else ONES.get(word, 0) + TENS.get(word, 0)
    return total + section
