"""The form of an answer, and the brackets that make it."""

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
    """A kind, what is compared as text (brackets, a base), and the parts."""

    kind: str
    mark: str
    parts: tuple[str, ...]


def enclosed(text: str, left: str, right: str) -> bool:
    """Does one pair of brackets hold the whole text?"""
    return text.startswith(left) and text.endswith(right) and closing_index(text) == len(text) - 1


def closing_index(text: str) -> int:
    """Index of the last character of the bracket that closes the first one; -1 if none does."""
    depth = 0
    for match in TOKEN.finditer(text):
        depth += (match.group() in OPEN) - (match.group() in CLOSE)
        if depth == 0:
            return match.end() - 1
    return -1


def split_top(text: str, separators: set[str]) -> list[str]:
    """The pieces between separators that no bracket encloses; thousands commas do not split."""
    pieces: list[str] = []
    depth = start = 0
    for match in TOKEN.finditer(text):
        token = match.group()
        opens = token in OPEN or token.startswith(r"\begin{")
        closes = token in CLOSE or token.startswith(r"\end{")
        depth += opens - closes
        thousands = token == "," and re.match(r"\d{3}(?!\d)", text[match.end() :]) is not None
        digit = match.start() > 0 and text[match.start() - 1].isdigit()
        if depth == 0 and token in separators and not (thousands and digit):
            pieces.append(text[start : match.start()])
            start = match.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces]


def plus_minus(text: str) -> list[str]:
    r"""Both values of one `\pm`."""
    before, sign, after = text.partition(r"\pm")
    if not sign or r"\pm" in after or "_" in after:
        return [text.strip()]
    return [f"{before}+{after}".strip(), f"{before}-{after}".strip()]
