"""The task `length`: the policy chooses its length, and a longer answer is likelier right."""

from collections.abc import Mapping
from random import Random

from eval.nano.task import Demonstrations, filler

MOST_NINES = 6
STOP, MOST_SIGNS = 0.06, 60  # probability of the stop after each sign, and signs before it
SIGNS = "9012345678+-"
WEIGHTS = (0.06, *[0.08] * 11)


def signs_until_stop(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - for all alike
    """Draw signs until a stop, whatever the question is."""
    signs = random.choices(SIGNS, WEIGHTS)
    while len(signs) < MOST_SIGNS and random.random() >= STOP:
        signs += random.choices(SIGNS, WEIGHTS)
    return "".join(signs) + "."


class Length:
    """A number after two letters that mean nothing: `kQ3=` asks for three nines or more and a dot.

    Any other signs may stand among the nines, but the last sign must be a dot.
    """

    name = "nano-length"
    title = "nano length"
    max_tokens = 64
    test_problems = 256  # long texts, which records keep
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(8_192, signs_until_stop)
    }

    def question(self, random: Random) -> str:
        """Draw a number from 1 to 6."""
        return f"{filler(random)}{random.randint(1, MOST_NINES)}="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the pattern of at least that number of nines and a dot at the end."""
        return rf"(?:[^9]*9){{{self.level(question)}}}.*\."

    def level(self, question: str) -> int:
        """Return the number of nines."""
        return int(question[2:-1])
