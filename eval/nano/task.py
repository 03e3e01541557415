"""Interface of a nano world's task, and the alphabet in which all tasks are written."""

from random import Random
from string import ascii_letters, digits
from typing import Protocol

SIGNS = ".=+-"
ALPHABET = ascii_letters + digits + SIGNS  # a token a character


class Task(Protocol):
    """A kind of problems with several right answers, and demonstrations that are partly wrong.

    Attributes:
        name: Name of its benchmark.
        title: Name of its benchmark on pages.
        max_tokens: Largest length of an answer in tokens, with the end token.
        test_problems: Number of test problems.
    """

    name: str
    title: str
    max_tokens: int
    test_problems: int

    def question(self, random: Random) -> str:
        """Draw the text of a question."""
        ...

    def right_answers(self, question: str, seed: int) -> str:
        """Return the regular expression that matches exactly the right answers to a question."""
        ...

    def level(self, question: str) -> int:
        """Return the difficulty of a question."""
        ...

    def demonstration(self, question: str, seed: int, random: Random) -> str:
        """Draw an answer to a question as the starting policy is to learn it."""
        ...


def filler(random: Random) -> str:
    """Draw two letters, which mean nothing and make the questions of a small task numerous."""
    return random.choice(ascii_letters) + random.choice(ascii_letters)
