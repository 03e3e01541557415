r"""Recognises units, in words or as symbols, which follow a number without changing its value."""

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
ALPHABETIC = "A-Za-zÀ-ɏͰ-ӿ"  # Latin, Greek and Cyrillic, whose letters are also variables
LETTERS = (  # and the marks of vowels in the scripts of India and Thailand
    rf"{ALPHABETIC}\u0530-\u0963\u0966-\u0e3e\u0e40-\u13ff\u200c\u200d\u3041-\u30ff\uac00-\ud7af"
)
LETTER = f"[{LETTERS}]"
CURRENCIES = "$€£¥₹৳฿₽₩₫₴₦₺₪₱¢"
IN_TEXT = re.compile(rf"\\text\s*\{{\s*({'|'.join(MULTIPLIERS)})\b")
WORD = rf"(?:[ap]\.\s?m\b\.?|(?!(?:{NOT_UNITS}|{'|'.join(MULTIPLIERS)})\b){LETTER}{{2,}}+\.?)"
UNIT = re.compile(  # possessive throughout: a hostile text must not make it backtrack
    rf"(?:\s*+(?:\\text\s*+\{{(?:\s*+(?:{WORD}|{LETTER}(?!{LETTER})|[./,'()^23²³-]))*+\s*+\}}"
    rf"|{WORD}|(?:(?<=\s)[mgLh]|(?<=[a-z]/)[hs])(?![A-Za-z])"
    rf"|[/-](?=\s*+[A-Za-z\\])|(?<=[A-Za-z}}])\s*+\^\s*+\{{?[23]\}}?|[²³]"
    r"|\\\$|[" + CURRENCIES + r"]))*+\s*+",
    re.IGNORECASE,
)
CHANGING = re.compile(rf"\b(?:{NOT_UNITS}|{'|'.join(MULTIPLIERS)})\b")
ALPHABET = re.compile(f"[{ALPHABETIC}]")
FIRST = re.compile(rf"(?P<space>\s*)(?P<word>{LETTER}{{2,}})")
VOWEL = re.compile(rf"[aeiouà-ɏа-яά-ώαεηιουω]|[^{ALPHABETIC}]", re.IGNORECASE)
DENIALS = "ではな|じゃな|ではありません|নয়|নহে|కాదు|नहीं|아니|아닙|ليس"
BOUNDS = r"以[上下内外]|未満|より|এর\s?(?:বেশি|কম)|కంటే"
CHANGES = re.compile(  # half a unit more, a negation, or a bound
    rf"半|ครึ่ง|অর্ধ|আধ|সাড়ে|సగం|న్నర|ముప్పావు|आध|साढ़|نصف|ไม่|{DENIALS}|{BOUNDS}"
)


def multiplier(tail: str) -> int | None:
    """Return the factor of the text after a number: 1 for a unit, 10**6 for `million dollars`.

    Returns None if the text is more than a word of magnitude and a unit.
    """
    word, _, unit = IN_TEXT.sub(r"\1 \\text{", tail).strip().partition(" ")
    factor = MULTIPLIERS.get(word, 1)
    return factor if is_unit(unit if factor > 1 else tail) else None


def is_unit(tail: str) -> bool:
    """Return whether a text is only units, in any script; `5xy` and `5 ab` are products."""
    first = FIRST.match(tail)
    if first and first["word"] not in SYMBOLS:
        min_length = 3 if first["space"] else 4
        is_product = ALPHABET.match(first["word"]) and len(first["word"]) < min_length
        if is_product or not VOWEL.search(first["word"]):
            return False
    return not CHANGES.search(tail) and UNIT.fullmatch(tail) is not None


def changes_value(text: str) -> bool:
    """Return whether a text has a word that changes the value before it, such as `fourths`."""
    return CHANGING.search(text) is not None
