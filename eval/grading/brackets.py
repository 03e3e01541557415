"""The form of an answer, and functions that match and split at brackets."""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"\\begin\{\w+\*?\}|\\end\{\w+\*?\}|\\[{}]|\\(?:cup|pm|mp|text)(?![A-Za-z])|\\[A-Za-z]+|\\."
    r"|[()\[\]{},;:]|.",
    re.DOTALL,
)
OPEN, CLOSE = {"(", "[", "{", r"\{"}, {")", "]", "}", r"\}"}


@dataclass(frozen=True)
class Form:
    """The form of an answer: its kind, a mark that is compared as text, and its parts.

    The mark is, for example, the brackets of a tuple, the shape of a matrix or a word.
    """

    kind: str
    mark: str
    parts: tuple[str, ...]


def is_enclosed(text: str, opening: str, closing: str) -> bool:
    """Return whether one pair of brackets encloses the whole text."""
    if not (text.startswith(opening) and text.endswith(closing)):
        return False
    return closing_index(text) == len(text) - 1


def closing_index(text: str) -> int:
    """Return the index of the last character of the bracket that closes the first; -1 if none."""
    depth = 0
    for match in TOKEN.finditer(text):
        depth += (match.group() in OPEN) - (match.group() in CLOSE)
        if depth == 0:
            return match.end() - 1
    return -1


def split_top(text: str, separators: set[str]) -> list[str]:
    """Split a text at the separators outside all brackets; thousands commas do not split."""
    pieces: list[str] = []
    depth = start = 0
    for match in TOKEN.finditer(text):
        token = match.group()
        opens = token in OPEN or token.startswith(r"\begin{")
        closes = token in CLOSE or token.startswith(r"\end{")
        depth += opens - closes
        if depth == 0 and token in separators and not is_thousands_comma(text, match):
            pieces.append(text[start : match.start()])
            start = match.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces]


def is_thousands_comma(text: str, token: re.Match[str]) -> bool:
    """Return whether a token is a comma between a digit and a group of three digits."""
    if token.group() != "," or not text[max(0, token.start() - 1) : token.start()].isdigit():
        return False
    return re.match(r"\d{3}(?!\d)", text[token.end() :]) is not None


def plus_minus(text: str) -> list[str]:
    r"""Return both values of an expression with one `\pm` or `\mp`; any other text alone."""
    before, sign, after = text.replace(r"\mp", r"\pm").partition(r"\pm")
    if not sign or r"\pm" in after or "_" in after:
        return [text.strip()]
    return [f"{before}+{after}".strip(), f"{before}-{after}".strip()]
