r"""What may follow a number without changing its value: a unit, in words or as a symbol."""

import re

MULTIPLIERS = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
NOT_UNITS = (
    "pi|sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|mod|or|and|to|times(?!\\s*(?:\\}|\\Z))|over|by|"
    "plus|minus|divided|remainder|out|of|is|are|but|not|base|if|through|than|less|more|infinity|"
    "percent|per cent|inf|nan|with|squared|cubed|factorial|hundreds|thousands|millions|billions|"
    "trillions?|hal(?:f|ves)|(?:quarter|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|"
    "hundredth|thousandth)s?"
)
SHORT = (
    "cm mm km dm kg mg ml mL dl cl cc ft in yd mi oz lb lbs hr hrs min mins sec secs ms am pm AM "
    "PM mph kph rpm GB MB KB TB px pt pts pcs sq cu ha kW kWh Hz yr yrs wk wks USD EUR GBP CNY RMB"
)
SYMBOLS = frozenset(SHORT.split())
LETTER = "[A-Za-zÀ-ɏЀ-ӿ]"
IN_TEXT = re.compile(rf"\\text\s*\{{\s*({'|'.join(MULTIPLIERS)})\b")
WORD = rf"(?:[ap]\.\s?m\b\.?|(?!(?:{NOT_UNITS}|{'|'.join(MULTIPLIERS)})\b){LETTER}{{2,}}+\.?)"
UNIT = re.compile(  # possessive throughout: a hostile text must not make it backtrack
    rf"(?:\s*+(?:\\text\s*+\{{(?:\s*+(?:{WORD}|{LETTER}(?!{LETTER})|[./,'()^23²³-]))*+\s*+\}}"
    rf"|{WORD}|(?:(?<=\s)[mgLh]|(?<=[a-z]/)[hs])(?![A-Za-z])"
    rf"|[/-](?=\s*+[A-Za-z\\])|(?<=[A-Za-z}}])\s*+\^\s*+\{{?[23]\}}?|[²³]"
    r"|\\\$|[$€£¥]))*+\s*+",
    re.IGNORECASE,
)
CHANGING = re.compile(rf"\b(?:{NOT_UNITS}|{'|'.join(MULTIPLIERS)})\b")
FIRST = re.compile(rf"(?P<space>\s*)(?P<word>{LETTER}{{2,}})")
VOWEL = re.compile("[aeiouà-ɏа-я]", re.IGNORECASE)


def multiplier(tail: str) -> int | None:
    """1 for a unit, 10**6 for `million dollars`; None when the tail is more than a unit."""
    word, _, rest = IN_TEXT.sub(r"\1 \\text{", tail).strip().partition(" ")
    factor = MULTIPLIERS.get(word, 1)
    return factor if is_unit(rest if factor > 1 else tail) else None


def is_unit(tail: str) -> bool:
    """Is the tail units and nothing else? `5xy` and `5 ab` are products of variables."""
    first = FIRST.match(tail)
    if first and first["word"] not in SYMBOLS:
        long = 3 if first["space"] else 4
        if len(first["word"]) < long or not VOWEL.search(first["word"]):
            return False
    return UNIT.fullmatch(tail) is not None


def changes_value(text: str) -> bool:
    """Does a text that follows a value hold a word that makes it another one, as `fourths`?"""
    return CHANGING.search(text) is not None
