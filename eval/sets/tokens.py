r"""Tokenises questions so that they compare equal regardless of case, spacing and notation.

Tokens are lower-case words, single characters of Greek and of scripts without spaces, operators,
and numbers by value (1,000 and 1{,}000 and 1000.0 are equal). LaTeX braces, dollar signs, the
backslashes of commands and punctuation are dropped.
"""

import re
import unicodedata
from decimal import Decimal
from typing import TypeAlias

Tokens: TypeAlias = tuple[str, ...]

# Thai and Lao, Burmese, Khmer, kana and Han: no spaces between words.
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
LATIN, GREEK = "a-z\u00df-\u024f", "\u0370-\u03ff"
DROPPED = re.compile(r"\\(?:left|right|displaystyle|[,;!: ])|(?<=\d)\{,\}(?=\d{3})")
TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?|\.\d+)"
    rf"|[{LATIN}]+|[^\W\d_{LATIN}{GREEK}{SPACELESS}]+|[^\W\d_]|[-+*/=<>^%|!]"
)
ALONE = re.compile(f"[{SPACELESS}]")


def plain(text: str) -> str:
    """Return the text in lower case and NFKC form, with a hyphen for the minus sign."""
    return unicodedata.normalize("NFKC", text).casefold().replace("−", "-")


def tokens(text: str) -> Tokens:
    """Return the tokens of a text, numbers in canonical form."""
    return tuple(
        canonical_number(match["number"]) if match["number"] else match.group()
        for match in TOKEN.finditer(DROPPED.sub("", plain(text)))
    )


def canonical_number(number: str) -> str:
    """Return a number without grouping commas and trailing zeros: "1,000.0" gives "1000"."""
    digits = number.replace(",", "")
    return f"{Decimal(digits).normalize():f}" if len(digits) < 100 else digits


def count_words(text: Tokens) -> int:
    """Count the words of a text; a single letter is a word only in a script without spaces."""
    return sum(token.isalpha() and (len(token) > 1 or is_character_word(token)) for token in text)


def is_character_word(token: str) -> bool:
    """Return whether a token is a character of a script without spaces."""
    return not token.isascii() and bool(ALONE.match(token))


def numbers(text: Tokens) -> Tokens:
    """Return the numbers among the tokens of a text, in order."""
    return tuple(token for token in text if token[0].isdigit())
