"""The task `many`: any two summands of a number, a skill that large updates destroy."""

from collections.abc import Mapping
from random import Random

from eval.nano.task import Demonstrations, filler

LARGEST = 99


def number_of(question: str) -> int:
    """Return the number that a question asks two summands of."""
    return int(question[2:-1])


def any_summands(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - alike for all seeds
    """Draw the first summand evenly from 0 to the number."""
    first = random.randint(0, number_of(question))
    return f"{first}+{number_of(question) - first}"


class Many:
    """A number after two letters that mean nothing: `kQ57=`; an answer is any `a+b` of that sum."""

    name = "nano-many"
    title = "nano many"
    max_tokens = 8
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(16_384, any_summands)
    }

    def question(self, random: Random) -> str:
        """Draw a number from 0 to 99."""
        return f"{filler(random)}{random.randint(0, LARGEST)}="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the alternatives `0+n`, `1+(n-1)` to `n+0`."""
        total = number_of(question)
        return "|".join(rf"{a}\+{total - a}" for a in range(total + 1))

    def level(self, question: str) -> int:
        """Return the number."""
        return number_of(question)
