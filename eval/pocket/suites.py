"""The four suites of the pocket world, their splits and their digest."""

import hashlib
from collections.abc import Callable, Container
from dataclasses import replace
from functools import cache
from itertools import count
from random import Random

from eval.errors import BadValue, UnknownName
from eval.pocket.algebra import equation, expression, fraction, remainder
from eval.pocket.draft import Draft
from eval.pocket.school import school
from eval.pocket.stories import Difficulty, basket, compared, hoard
from eval.sets.problem import Problem

SIZES = {"train": 6000, "valid": 200, "test": 500}
PATIENCE = 40  # draws before a kind counts as used up
STORY = Difficulty()
STORIES = (hoard, compared, basket)
EXERCISES = (expression, equation, remainder, fraction)

Generator = Callable[[Random, int], Draft]


def english(random: Random, turn: int) -> Draft:
    """Story kinds in turn, in English."""
    return STORIES[turn % 3](random, "en", STORY)


def chinese(random: Random, turn: int) -> Draft:
    """Story kinds in turn, in Chinese."""
    return STORIES[turn % 3](random, "zh", STORY)


def exercises(random: Random, turn: int) -> Draft:
    """Exercise kinds in turn, levels 1 to 5 in turn."""
    return EXERCISES[turn % 4](random, 1 + turn // 4 % 5)


def grades(random: Random, turn: int) -> Draft:
    """School grades 1 to 6 in turn."""
    grade = 1 + turn % 6
    return replace(school(random, grade), level=grade)


SUITES: dict[str, Generator] = {
    "pocket-gsm8k": english,
    "pocket-math": exercises,
    "pocket-mgsm-zh": chinese,
    "pocket-cmath": grades,
}


@cache
def drafts(suite: str, split: str) -> tuple[Draft, ...]:
    """All drafts of a split: distinct questions whose signatures this split owns.

    A signature belongs to one split by its hash, in every suite and language alike, so numbers
    seen in training never come back in a test problem of the same kind.

    Raises:
        UnknownName: for a suite or split that does not exist.
    """
    if suite not in SUITES:
        raise UnknownName("pocket suite", suite, SUITES)
    if split not in SIZES:
        raise UnknownName("split", split, SIZES)
    random = Random(f"{suite} {split}")
    found: dict[str, Draft] = {}
    for turn in count():
        made = fresh(SUITES[suite], random, turn, split, found)
        if made is not None:
            found[made.question] = made
        if len(found) == SIZES[split]:
            break
    return tuple(found.values())


def fresh(
    generator: Generator, random: Random, turn: int, split: str, found: Container[str]
) -> Draft | None:
    """A draft of this split that is not in `found`; None where the kind has hardly any left."""
    for _ in range(PATIENCE):
        made = generator(random, turn)
        if made.question not in found and made.split == split:
            return made
    return None


def pocket_problems(suite: str, split: str = "test", n: int | None = None) -> list[Problem]:
    """The first `n` problems of a split, or all of them.

    Raises:
        BadValue: if the split has fewer than `n` problems.
    """
    if n is not None and n > SIZES.get(split, n):
        raise BadValue(f"{n} problems of {suite}/{split} asked for, it has {SIZES[split]}")
    return [
        Problem(
            id=f"{suite}-{split}-{number}",
            question=made.question,
            answer=made.answer,
            language=made.language,
            solution=made.solution,
            level=made.level,
            subject=made.subject,
        )
        for number, made in enumerate(drafts(suite, split)[:n])
    ]


def pocket_digest() -> str:
    """SHA-256 over every problem of every split: the version of the pocket world."""
    digest = hashlib.sha256()
    for suite in SUITES:
        for split in SIZES:
            for made in drafts(suite, split):
                digest.update(repr((made.question, made.answer, made.solution)).encode())
    return digest.hexdigest()
