"""Numbers as Chinese answers write them: numerals, fractions, percentages, measure words."""

import re
from fractions import Fraction
from math import prod

DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
UNITS = {"十": 10, "百": 100, "千": 1000}
GROUPS = {"万": 10**4, "亿": 10**8}
NUMERALS = "零〇一二两三四五六七八九十百千万亿"
NUMERAL = f"[{NUMERALS}]+"
HAN = "㐀-鿿ぁ-ヿ"  # and kana
FIRST = rf"(?<![{NUMERALS}]){NUMERAL}+|(?<!\d)\d++"  # a whole run: none is read from its middle
SPELLED = re.compile(
    rf"(?P<minus>负)?(?:(?P<whole>{FIRST})又)?(?P<d>{FIRST})分[之の](?P<n>{NUMERAL}|\d+(?:\.\d+)?|{NUMERAL}点{NUMERAL})"
)
POINT = re.compile(rf"(?P<minus>负)?(?P<whole>{NUMERAL})(?:点(?P<tail>[零〇一二三四五六七八九]+))?")
MEASURE = rf"[{HAN}]{{0,6}}"
HALF = re.compile(
    rf"一半|(?P<whole>{NUMERAL}|\d+)(?:[个個年天周月里斤元杯倍]|時間|小时|小時|分钟)半{MEASURE}"
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
HALF_MORE = re.compile("半(?!径)")
JOINERS = re.compile(  # 千 before a unit is kilo: 18千克
    "或|和|与|比|余|又|到|至|点|分之|万|亿|百|千(?![克米瓦卡帕])|十|半|不"
)


def numeral(text: str) -> int | None:
    """The integer that a Chinese numeral spells: 三百零五 is 305, 三百五 350, 二〇二四 is 2024."""
    if len(text) > 1 and all(c in DIGITS for c in text):
        return int("".join(str(DIGITS[c]) for c in text))
    total = section = digit = 0
    last = 10  # the unit that a final digit counts tenths of
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


def part(text: str) -> Fraction | None:
    """A numeral, Chinese with 点 or in digits."""
    if text[:1].isdigit():
        return Fraction(text)
    whole, _, tail = text.partition("点")
    value = numeral(whole)
    if value is None:
        return None
    return Fraction(f"{value}.{''.join(str(DIGITS[c]) for c in tail)}") if tail else Fraction(value)


def chinese_number(text: str) -> tuple[Fraction, bool] | None:
    """(value, is a percentage) of 四分之三, 百分之二十, 十八个, 三点五元, 1.2万; else None."""
    bare = KILO.sub("", re.sub(r"\s|\\text|[{}]", "", text))
    if match := HALF.fullmatch(bare):
        return (part(match["whole"] or "0") or 0) + Fraction(1, 2), False
    if (match := SCALED.fullmatch(bare)) and not JOINERS.search(match["unit"]):
        scale = prod(GROUPS[c] for c in match["scale"])
        return Fraction(match["number"].replace(",", "")) * scale, False
    match = re.fullmatch(
        rf"(?:[^\d零〇一二两三四五六七八九十百千万亿负]*)({SPELLED.pattern}){MEASURE}", bare
    )
    if match:
        return spelled_fraction(match)
    match = re.fullmatch(rf"({POINT.pattern}){MEASURE}", bare)
    if match is None or JOINERS.search(bare[match.end(1) :]):
        return None
    value = part(match["whole"] + (f"点{match['tail']}" if match["tail"] else ""))
    return None if value is None else (-value if match["minus"] else value, False)


def spelled_fraction(match: re.Match[str]) -> tuple[Fraction, bool] | None:
    """分母 before 分子; 百分之 gives a percentage."""
    numerator, denominator = part(match["n"]), part(match["d"])
    whole = part(match["whole"]) if match["whole"] else Fraction(0)
    if numerator is None or whole is None or not denominator:
        return None
    sign = -1 if match["minus"] else 1
    if match["d"] == "百" and not match["whole"]:
        return sign * numerator, True
    return sign * (whole + numerator / denominator), False


def only_number(text: str) -> str | None:
    """The number of a text that has exactly one among Chinese words: 一共需要18小包 gives 18."""
    found = list(NUMBER.finditer(text))
    if len(found) != 1 or DENIED.search(text):
        return None
    before, after = text[: found[0].start()], text[found[0].end() :]
    if not (WORDS.fullmatch(before) and WORDS.fullmatch(after)) or HALF_MORE.search(after):
        return None
    if JOINERS.match(after.strip()):
        return None
    return found[0].group()
