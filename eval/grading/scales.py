"""Converts numbers with words of magnitude to digits: 2万3千 is 23000, 1.5 lakh 150000."""

import re
from fractions import Fraction
from functools import lru_cache

MYRIADS = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12}
FACTORS = MYRIADS | {
    word: factor
    for factor, names in (
        (100, "百"),
        (1000, "千 হাজার వేలు వేల พัน हज़ार हजार"),
        (10**4, "หมื่น"),
        (10**5, "lakhs lakh লাখ লক্ষ లక్షలు లక్షల లక్ష แสน लाख"),
        (10**6, "ล้าน"),
        (10**7, "crores crore কোটি కోట్లు కోట్ల కోటి करोड़"),
    )
    for word in names.split()
}
BEFORE_NUMBER = {"elfu": 10**3, "laki": 10**5, "milioni": 10**6, "bilioni": 10**9}  # Swahili
NOT_NEXT = {  # 5千克 are 5 kg, 百分之 is a percentage, พันธุ์ a species
    "百": "分",
    "千": "分克米瓦卡帕伏赫",
    "พัน": "ธ",
    "lakh": "a-z",
    "lakhs": "a-z",
    "crore": "a-z",
    "crores": "a-z",
} | dict.fromkeys(MYRIADS, "分")
NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,4}(?!\d)|\d{1,15})(?:\.\d{1,15})?"
SCALE = "|".join(
    rf"{word}(?![{NOT_NEXT[word]}])" if word in NOT_NEXT else word
    for word in sorted(FACTORS, key=len, reverse=True)
)
SCALED = re.compile(
    rf"(?<![\d.,]){NUMBER}\s?(?:{SCALE})(?:{SCALE}|\s?{NUMBER}\s?(?:{SCALE})){{0,12}}"
    r"(?:\d{2,4}(?![\d.,]*\d))?",
    re.IGNORECASE,
)
PREFIXED = re.compile(rf"\b({'|'.join(BEFORE_NUMBER)})\s({NUMBER})(?![.,]?\d)", re.IGNORECASE)
MONEY = re.compile(
    r"(?<![\d.,])(?:(?P<yuan>\d{1,9})\s?元\s?(?P<jiao>\d)\s?角(?:\s?(?P<fen>\d)\s?分)?"
    r"|(?P<whole>\d{1,9})\s(?P<unit>dollars?|euros?|pounds?)\s(?:and\s)?(?P<cents>\d{1,2})\s(?:cents?|pence))"
)
TOKEN = re.compile(rf"{NUMBER}|{SCALE}", re.IGNORECASE)


def without_scales(text: str) -> str:
    """Return the text with numbers that have words of magnitude written in digits.

    An amount of money in two units becomes a decimal: 3元5角 is 3.5元.
    """
    amounts = MONEY.sub(in_one_unit, text)
    return PREFIXED.sub(expand_prefixed, SCALED.sub(expand_scaled, amounts))


def in_one_unit(match: re.Match[str]) -> str:
    """Return the decimal amount of a match of MONEY: 3.05 dollars for 3 dollars and 5 cents."""
    if match["yuan"]:
        return f"{match['yuan']}.{match['jiao']}{match['fen'] or ''}元"
    return f"{match['whole']}.{match['cents']:0>2} {match['unit']}"


def value_of(number: str) -> int | Fraction:
    """Return the value of a match of NUMBER."""
    return Fraction(number.replace(",", "")) if "." in number else int(number.replace(",", ""))


def expand_scaled(match: re.Match[str]) -> str:
    """Return the digits of a match of SCALED.

    A myriad (万) multiplies the whole section before it, any other word only its own number.
    """
    return digits_of(match.group())


@lru_cache(maxsize=1024)  # texts that repeat themselves ask the same again and again
def digits_of(scaled: str) -> str:
    """Return the digits of a number with words of magnitude, see `expand_scaled`."""
    total: int | Fraction = 0
    section: int | Fraction = 0
    number: int | Fraction | None = None
    for token in TOKEN.findall(scaled):
        word = token.lower()
        if word not in FACTORS:
            number = value_of(word)
            continue
        if word not in MYRIADS:
            section += (1 if number is None else number) * FACTORS[word]
        elif section or number is not None:
            total += (section + (number or 0)) * MYRIADS[word]
            section = 0
        else:  # 万亿
            total *= MYRIADS[word]
        number = None
    return str(total + section + (number or 0))


def expand_prefixed(match: re.Match[str]) -> str:
    """Return the digits of a match of PREFIXED: "elfu 5" is 5000."""
    return str(BEFORE_NUMBER[match[1].lower()] * value_of(match[2]))
