"""The task `sums`: two numbers have one sum, which a fifth of the demonstrations get wrong."""

from collections.abc import Mapping
from random import Random

from eval.nano.task import Demonstrations, filler

LARGEST = 49
NOISE = 0.2  # share of demonstrations with another sum


def sum_of(question: str) -> int:
    """Return the sum that a question asks for."""
    first, second = question[2:-1].split("+")
    return int(first) + int(second)


def noisy_sum(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - alike for all seeds
    """Return the sum, or with probability `NOISE` one of the other sums of two numbers."""
    right = sum_of(question)
    if random.random() >= NOISE:
        return str(right)
    return str(random.choice([value for value in range(2 * LARGEST + 1) if value != right]))


def right_sum(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - alike for all
    """Return the sum."""
    return str(sum_of(question))


class Sums:
    """Two numbers after two letters that mean nothing: `kQ12+30=`; the answer is their sum."""

    name = "nano-sums"
    title = "nano sums"
    max_tokens = 3
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(16_384, noisy_sum),
        "right": Demonstrations(16_384, right_sum),
    }

    def question(self, random: Random) -> str:
        """Draw two numbers from 0 to 49."""
        return f"{filler(random)}{random.randint(0, LARGEST)}+{random.randint(0, LARGEST)}="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the sum."""
        return str(sum_of(question))

    def level(self, question: str) -> int:
        """Return the number of digits of the sum."""
        return len(str(sum_of(question)))
