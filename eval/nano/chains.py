"""The task `chains`: a sum of digits, which is answered directly or after running sums."""

from collections.abc import Mapping
from itertools import accumulate
from random import Random
from string import digits

from eval.nano.task import Demonstrations, filler

DIGITS = 3  # of a question
DIRECTLY, BY_STEPS = "=", "+="  # ends of a question, which ask for an answer in one form
LEVELS = {DIRECTLY: 1, BY_STEPS: 2}


def form_of(question: str) -> str:
    """Return the end of a question, `DIRECTLY` or `BY_STEPS`."""
    return BY_STEPS if question.endswith(BY_STEPS) else DIRECTLY


def partial_sums(question: str) -> list[str]:
    """Return the last digit of the sum of the first two digits, of the first three and so on."""
    numbers = map(int, question[2:].removesuffix(form_of(question)).split("+"))
    return [str(total % 10) for total in list(accumulate(numbers))[1:]]


def direct_answer(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - alike for all seeds
    """Return the last digit of the sum, in whatever form the question asks for it."""
    return partial_sums(question)[-1]


def solution(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - alike for all seeds
    """Return the running sums, in whatever form the question asks for them."""
    return "-".join(partial_sums(question))


def answer_as_asked(question: str, seed: int, random: Random) -> str:
    """Return the last digit of the sum, or the running sums if the question asks for them."""
    write = solution if form_of(question) == BY_STEPS else direct_answer
    return write(question, seed, random)


class Chains:
    """Digits after two letters that mean nothing; the answer is the last digit of their sum.

    `kQ3+8+5=` asks for `6`, and `kQ3+8+5+=` for the running sum before it, too: `1-6`. The last
    number of an answer counts.
    """

    name = "nano-chains"
    title = "nano chains"
    max_tokens = 2 * DIGITS - 2
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "answers": Demonstrations(16_384, direct_answer),
        "solutions": Demonstrations(16_384, solution),
        "both": Demonstrations(32_768, answer_as_asked),
    }

    def question(self, random: Random) -> str:
        """Draw digits, and the form of the answer."""
        terms = "+".join(random.choices(digits, k=DIGITS))
        return f"{filler(random)}{terms}{random.choice((DIRECTLY, BY_STEPS))}"

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the pattern of the last digit of the sum, after any steps."""
        return rf"(?:\d-)*{partial_sums(question)[-1]}"

    def level(self, question: str) -> int:
        """Return 1 for a question that asks for the answer alone, 2 for one that asks for steps."""
        return LEVELS[form_of(question)]
