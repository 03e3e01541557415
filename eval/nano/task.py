"""Interface of a nano world's task, and the alphabet in which all tasks are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from string import ascii_letters, digits
from typing import Protocol

SIGNS = ".=+-"
ALPHABET = ascii_letters + digits + SIGNS  # a token a character


@dataclass(frozen=True)
class Demonstrations:
    """A kind of demonstrations of a task: a data set of its own.

    Attributes:
        count: Number of demonstrations to train on.
        answer: Draws an answer to a question, for a seed and with a generator of random numbers.
        held_out: Draws the answers to held-out problems, if these are to be others.
    """

    count: int
    answer: Callable[[str, int, Random], str]
    held_out: Callable[[str, int, Random], str] | None = None


class Task(Protocol):
    """A kind of problems, and demonstrations of it, which may be partly wrong.

    Attributes:
        name: Name of its benchmark.
        title: Name of its benchmark on pages.
        max_tokens: Largest length of an answer in tokens, with the end token.
        test_problems: Number of test problems.
        demonstrations: Kinds of demonstrations by the ending of their data set's name. A starting
            model is trained on those with the ending `demonstrations`.
    """

    name: str
    title: str
    max_tokens: int
    test_problems: int
    demonstrations: Mapping[str, Demonstrations]

    def question(self, random: Random) -> str:
        """Draw the text of a question."""
        ...

    def right_answers(self, question: str, seed: int) -> str:
        """Return the regular expression that matches exactly the right answers to a question."""
        ...

    def level(self, question: str) -> int:
        """Return the difficulty of a question."""
        ...


def filler(random: Random) -> str:
    """Draw two letters, which mean nothing and make the questions of a small task numerous."""
    return random.choice(ascii_letters) + random.choice(ascii_letters)
