"""The task `digits`: the running sums of eight digits, of which the last one is the answer."""

import re
from collections.abc import Mapping
from itertools import accumulate
from random import Random
from string import digits
from typing import NamedTuple

from eval.errors import BadValue
from eval.nano.task import Demonstrations

LENGTH = 8
QUESTION = re.compile("[0-9]+=")


class JudgedSums(NamedTuple):
    """A solution by its steps, one a character.

    Attributes:
        steps: The steps.
        is_right: For each step, whether no step up to it is wrong; a solution of another length
            than the right one has a wrong last step.
        answer: The answer; empty for a solution that has none.
        is_answered: Whether the answer is the right one, whatever the steps are.
    """

    steps: tuple[str, ...]
    is_right: tuple[bool, ...]
    answer: str
    is_answered: bool


def running_sums(question: str) -> str:
    """Return the sums modulo 10 of the first 1, 2, ... digits of a question.

    Raises:
        BadValue: it is another question.
    """
    if not QUESTION.fullmatch(question):
        raise BadValue(f"question {question!r:.80}: expected digits and '='")
    return "".join(str(total % 10) for total in accumulate(map(int, question[:-1])))


def right_prefixes(question: str, solution: str) -> tuple[bool, ...]:
    """Return for each step of a solution, and for its end, whether no step before it is wrong.

    The first wrong step has a right prefix; the prefixes after it have gone wrong.
    """
    right = running_sums(question)
    return tuple(right.startswith(solution[:end]) for end in range(len(solution) + 1))


def judge_sums(question: str, solution: str) -> JudgedSums:
    """Return a solution of a question with the verdicts on its steps and on its answer."""
    right = running_sums(question)
    is_whole = len(solution) == len(right) and set(solution) <= {*digits}
    answer = solution[-1] if is_whole else ""
    verdicts = (*right_prefixes(question, solution)[1:-1], solution == right)
    return JudgedSums(tuple(solution), verdicts if solution else (), answer, answer == right[-1])


class RunningSums:
    """Eight digits, `31415929=`; the solution is their running sums, `34894354`.

    A solution may have a right answer in spite of wrong steps.

    Attributes:
        length: Number of digits of a question.
        digits: The digits that questions have.
    """

    name = "nano-digits"
    title = "nano digits"
    length = LENGTH
    digits = digits
    max_tokens = LENGTH + 1
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(16_384, lambda question, *_: running_sums(question))
    }

    def question(self, random: Random) -> str:
        """Draw the digits."""
        return "".join(random.choices(self.digits, k=self.length)) + "="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the solutions that end in the sum of all digits, whatever stands before it."""
        return f"[0-9]{{{LENGTH - 1}}}{running_sums(question)[-1]}"

    def level(self, question: str) -> int:  # noqa: ARG002 - all are alike
        """Return 1."""
        return 1
