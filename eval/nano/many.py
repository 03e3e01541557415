"""The task `many`: any two summands of a number, a skill that large updates destroy."""

from random import Random

from eval.nano.task import filler

LARGEST = 99


class Many:
    """A number after two letters that mean nothing: `kQ57=`; an answer is any `a+b` of that sum."""

    name = "nano-many"
    title = "nano many"
    max_tokens = 8
    test_problems = 512

    def question(self, random: Random) -> str:
        """Draw a number from 0 to 99."""
        return f"{filler(random)}{random.randint(0, LARGEST)}="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the alternatives `0+n`, `1+(n-1)` to `n+0`."""
        total = self.level(question)
        return "|".join(rf"{a}\+{total - a}" for a in range(total + 1))

    def level(self, question: str) -> int:
        """Return the number."""
        return int(question[2:-1])

    def demonstration(self, question: str, seed: int, random: Random) -> str:  # noqa: ARG002
        """Draw the first summand evenly from 0 to the number."""
        total = self.level(question)
        first = random.randint(0, total)
        return f"{first}+{total - first}"
