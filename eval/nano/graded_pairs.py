"""The task `digits`: pairs of answers to a question, of known order and drawn by the seed.

A question has eight digits, `31415929=`, and its right answer the successor of each, `42526030`.
"""

from collections.abc import Iterator
from itertools import cycle, islice
from random import Random
from string import digits
from typing import NamedTuple

from eval.nano.splits import owning_split

DIGITS = 8
WRONG = 0.12  # share of wrong digits in a chosen answer
GRADES = (3, 2, 1)  # a rejected answer has this many wrong digits more; more is clearer
OF_A_QUESTION = 8  # training pairs


class GradedPair(NamedTuple):
    """Two answers to a question, the better one first, and by how many digits it is better."""

    question: str
    chosen: str
    rejected: str
    grade: int


def training_pairs(count: int, seed: int) -> list[GradedPair]:
    """Return pairs of questions of the train split, several of each question."""
    random = Random(f"digits train {seed}")
    drawn, grades = questions("train", random), cycle(GRADES)
    pairs = (graded_pair(q, next(grades), random) for q in drawn for _ in range(OF_A_QUESTION))
    return list(islice(pairs, count))


def held_out_pairs(count: int, seed: int) -> list[GradedPair]:
    """Return pairs of questions of the valid split; the first pair is the same for all seeds."""
    pairs: list[GradedPair] = []
    for name, number in (("of all seeds", 1), (str(seed), count - 1)):
        random = Random(f"digits valid {name}")
        drawn = islice(zip(questions("valid", random), cycle(GRADES), strict=False), number)
        pairs += [graded_pair(question, grade, random) for question, grade in drawn]
    return pairs


def questions(split: str, random: Random) -> Iterator[str]:
    """Yield questions of a split without end."""
    while True:
        question = "".join(random.choices(digits, k=DIGITS)) + "="
        if owning_split(question) == split:
            yield question


def graded_pair(question: str, grade: int, random: Random) -> GradedPair:
    """Draw a pair of answers to a question.

    The chosen answer is wrong in a share `WRONG` of the digits, at most as many as leave room for
    the grade; the places of the mistakes of both answers are drawn apart.
    """
    wrong = min(sum(random.random() < WRONG for _ in range(DIGITS)), DIGITS - grade)
    chosen, rejected = (with_mistakes(question, count, random) for count in (wrong, wrong + grade))
    return GradedPair(question, chosen, rejected, grade)


def with_mistakes(question: str, count: int, random: Random) -> str:
    """Return the successors modulo 10 of the digits of a question, `count` of them another one."""
    places = random.sample(range(DIGITS), count)
    steps = [random.randint(2, 10) if place in places else 1 for place in range(DIGITS)]
    return "".join(str((int(digit) + n) % 10) for digit, n in zip(question, steps, strict=False))
