r"""A text as the tokens by which questions are compared, however it is written.

Lower-case words, single characters of scripts without spaces and of Greek, numbers by value (1,000
and 1{,}000 and 1000.0 are one) and operators. LaTeX braces, dollar signs, commands' backslashes and
punctuation are dropped.
"""

import re
import unicodedata
from decimal import Decimal
from typing import TypeAlias

Tokens: TypeAlias = tuple[str, ...]

# Thai and Lao, Burmese, Khmer, kana and Han: words are not apart.
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
LATIN, GREEK = "a-z\u00df-\u024f", "\u0370-\u03ff"
DROPPED = re.compile(r"\\(?:left|right|displaystyle|[,;!: ])|(?<=\d)\{,\}(?=\d{3})")
TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?|\.\d+)"
    rf"|[{LATIN}]+|[^\W\d_{LATIN}{GREEK}{SPACELESS}]+|[^\W\d_]|[-+*/=<>^%|!]"
)
ALONE = re.compile(f"[{SPACELESS}]")


def plain(text: str) -> str:
    """One form of each character, in lower case."""
    return unicodedata.normalize("NFKC", text).casefold().replace("−", "-")


def tokens(text: str) -> Tokens:
    """The text as compared."""
    return tuple(
        spelled(match["number"]) if match["number"] else match.group()
        for match in TOKEN.finditer(DROPPED.sub("", plain(text)))
    )


def spelled(number: str) -> str:
    """A number by its value: 1,000 and 1000.0 are 1000."""
    digits = number.replace(",", "")
    return f"{Decimal(digits).normalize():f}" if len(digits) < 100 else digits


def words(text: Tokens) -> int:
    """How many words a text has; a letter alone is one in a script without spaces only."""
    return sum(token.isalpha() and (len(token) > 1 or is_character_word(token)) for token in text)


def is_character_word(token: str) -> bool:
    """Whether a token is a character of a script without spaces."""
    return not token.isascii() and bool(ALONE.match(token))


def numbers(text: Tokens) -> Tokens:
    """The numbers of a text in their order."""
    return tuple(token for token in text if token[0].isdigit())
