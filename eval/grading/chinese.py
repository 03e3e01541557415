"""Reads numbers in Chinese notation: numerals, fractions, percentages and measure words."""

import re
from fractions import Fraction
from math import prod

DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
UNITS = {"十": 10, "百": 100, "千": 1000}
GROUPS = {"万": 10**4, "亿": 10**8}
NUMERALS = "零〇一二两三四五六七八九十百千万亿"
NUMERAL = f"[{NUMERALS}]+"
HAN = "㐀-鿿ぁ-ヿ"  # and kana
FIRST = rf"(?<![{NUMERALS}]){NUMERAL}+|(?<!\d)\d++"  # never starts in the middle of a numeral
SPELLED = re.compile(
    rf"(?P<minus>负)?(?:(?P<whole>{FIRST})又)?(?P<d>{FIRST})分[之の](?P<n>{NUMERAL}|\d+(?:\.\d+)?|{NUMERAL}点{NUMERAL})"
)
POINT = re.compile(rf"(?P<minus>负)?(?P<whole>{NUMERAL})(?:点(?P<tail>[零〇一二三四五六七八九]+))?")
MEASURE = rf"[{HAN}]{{0,6}}"
HALF = re.compile(
    rf"一半|半分(?:です|だ|である)?|(?P<whole>{NUMERAL}|\d+)(?:[个個年天周月里斤元杯倍]|時間|小时|小時|分钟)半{MEASURE}"
)
SCALED = re.compile(rf"(?P<number>-?\d[\d,]*(?:\.\d+)?)(?P<scale>万亿|[万亿])(?P<unit>{MEASURE})")
NUMBER = re.compile(
    r"-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s*/\s*\d+|\s*\\?%)?|-?\s*\\frac\s*\{\d+\}\s*\{\d+\}"
)
# Each character matches one alternative only: overlapping ones take exponential time to fail.
WORDS = re.compile(rf"(?:[{HAN}\s,.:;()¥$~={{}}A-Za-z]|(?<=[A-Za-z])[²³]|\\text\s*\{{)*+")
KILO = re.compile(  # 五千克 is 5 kg and 十八千米 18 km, but 五千米 are 5000 m
    "千(?=克)|(?:(?<=[十百])|(?<=[十百][一二三四五六七八九]))千(?=[米瓦卡帕])"
)
DENIED = re.compile("不是|不等|ではな|じゃな|ではありません")
MORE_OR_LESS = re.compile("半(?!径)|(?<![\\s,.;:])以[上下内外]|未満|より")
BOUND = re.compile(r"(?:[大小多少高低]于|超过|不到|不足)\s?\Z")
JOINERS = re.compile(  # 千 before a unit is kilo: 18千克
    "或|和|与|比|余|又|到|至|点|分之|万|亿|百|千(?![克米瓦卡帕])|十|半|不|[个年天]?多(?!边)|以[上下内外]"
)


def parse_numeral(text: str) -> int | None:
    """Return the integer of a Chinese numeral: 三百零五 is 305, 三百五 350, 二〇二四 2024."""
    if len(text) > 1 and set(text) <= DIGITS.keys():
        return int("".join(str(DIGITS[c]) for c in text))
    total = section = digit = 0
    last = 10  # a final digit counts tenths of this unit
    for char in text:
        if char in DIGITS:
            digit = DIGITS[char]
            last = last if digit else 10
        elif char in UNITS:
            section += (digit or 1) * UNITS[char]
            digit, last = 0, UNITS[char]
        elif char in GROUPS:
            total = (total + section + digit) * GROUPS[char]
            section, digit, last = 0, 0, GROUPS[char]
        else:
            return None
    return total + section + digit * last // 10


def parse_decimal(text: str) -> Fraction | None:
    """Return the value of a decimal in digits, or of a Chinese numeral with 点."""
    if text[:1].isdigit():
        return Fraction(text)
    integer_part, _, tail = text.partition("点")
    integer = parse_numeral(integer_part)
    if integer is None:
        return None
    decimals = "".join(str(DIGITS[c]) for c in tail)
    return Fraction(f"{integer}.{decimals}") if tail else Fraction(integer)


def read_chinese_number(text: str) -> tuple[Fraction, bool] | None:
    """Return the value of a number in Chinese notation and whether it is a percentage; else None.

    Such numbers are 四分之三, 百分之二十, 十八个, 三点五元 and 1.2万, for example.
    """
    bare = KILO.sub("", re.sub(r"\s|\\text|[{}]", "", text))
    if match := HALF.fullmatch(bare):
        return (parse_decimal(match["whole"] or "0") or 0) + Fraction(1, 2), False
    if (match := SCALED.fullmatch(bare)) and not JOINERS.search(match["unit"]):
        scale = prod(GROUPS[c] for c in match["scale"])
        return Fraction(match["number"].replace(",", "")) * scale, False
    match = re.fullmatch(
        rf"(?:[^\d零〇一二两三四五六七八九十百千万亿负]*)({SPELLED.pattern}){MEASURE}", bare
    )
    return spelled_fraction(match) if match else spelled_decimal(bare)


def spelled_fraction(match: re.Match[str]) -> tuple[Fraction, bool] | None:
    """Return the value of a match of SPELLED and whether it is a percentage (百分之)."""
    numerator, denominator = parse_decimal(match["n"]), parse_decimal(match["d"])
    integer_part = parse_decimal(match["whole"]) if match["whole"] else Fraction(0)
    if numerator is None or integer_part is None or not denominator:
        return None
    sign = -1 if match["minus"] else 1
    if match["d"] == "百" and not match["whole"]:
        return sign * numerator, True
    return sign * (integer_part + numerator / denominator), False


def spelled_decimal(text: str) -> tuple[Fraction, bool] | None:
    """Return the value of a Chinese numeral, which may have a measure word; None for other texts.

    The value is never a percentage.
    """
    match = re.fullmatch(rf"({POINT.pattern}){MEASURE}", text)
    if match is None or JOINERS.search(text[match.end(1) :]):
        return None
    decimal = parse_decimal(match["whole"] + (f"点{match['tail']}" if match["tail"] else ""))
    return None if decimal is None else (-decimal if match["minus"] else decimal, False)


def single_number(text: str) -> str | None:
    """Return the only number of a text of Chinese words, "18" of 一共需要18小包; else None."""
    numbers = list(NUMBER.finditer(text))
    if len(numbers) != 1 or DENIED.search(text):
        return None
    before, after = text[: numbers[0].start()], text[numbers[0].end() :]
    if not (WORDS.fullmatch(before) and WORDS.fullmatch(after)) or MORE_OR_LESS.search(after):
        return None
    if JOINERS.match(after.strip()) or BOUND.search(before):
        return None
    return numbers[0].group()
