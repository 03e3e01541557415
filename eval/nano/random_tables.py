"""The task `tables`: two letters for two others, a random table that can only be memorised."""

from functools import cache
from random import Random
from string import ascii_letters

from eval.errors import UnknownName
from eval.sets.problem import Answers, Problem

LETTERS = ascii_letters[:42]  # 1,764 keys, enough for the known pairs and the largest table
PREFIX = "nano-tables"
KNOWN = f"{PREFIX}-known"  # the pairs that the starting model has learnt
FEW, TABLE, MANY = f"{PREFIX}-64", f"{PREFIX}-600", f"{PREFIX}-1500"
KNOWN_PAIRS = 256
COUNTS = {KNOWN: KNOWN_PAIRS, FEW: 64, TABLE: 600, MANY: 1500}
MAX_TOKENS = 3  # of an answer, with the end token
SPLITS = ("train", "valid", "test")


@cache
def law(seed: int) -> dict[str, str]:
    """Return the two letters of every key in an order that the seed draws, as it does the letters.

    Both letters of an answer are drawn evenly and apart from the key: 10.8 bits a pair.
    """
    random = Random(f"tables {seed}")
    keys = [first + second for first in LETTERS for second in LETTERS]
    random.shuffle(keys)
    return {key: "".join(random.choices(LETTERS, k=2)) for key in keys}


def table(name: str, seed: int) -> dict[str, str]:
    """Return the pairs of a table: the first keys of the law are known, those after them are not.

    A smaller table is the beginning of a larger one.

    Raises:
        UnknownName: there is no such table.
    """
    if name not in COUNTS:
        raise UnknownName("table of pairs", name, COUNTS)
    begin = 0 if name == KNOWN else KNOWN_PAIRS
    return dict([*law(seed).items()][begin : begin + COUNTS[name]])


def pair_questions(name: str, seed: int) -> list[str]:
    """Return the question of each pair of a table: its key and a sign, `aQ=`."""
    return [f"{key}=" for key in table(name, seed)]


def pair_answers(name: str, seed: int) -> list[str]:
    """Return the answer of each pair of a table: two letters."""
    return [*table(name, seed).values()]


def pair_problems(name: str, split: str, seed: int) -> tuple[Problem, ...]:
    """Return the pairs of a table as problems.

    All splits are the table itself. No pair says anything of another, so what can be measured is
    how well the pairs that were trained on are remembered.

    Raises:
        UnknownName: there is no such table or split.
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    pairs = zip(pair_questions(name, seed), pair_answers(name, seed), strict=True)
    return tuple(
        Problem(
            id=f"{name}-{split}-{seed}-{number}",
            question=question,
            answer=answer,
            answers=Answers((answer,), counts="whole"),
        )
        for number, (question, answer) in enumerate(pairs)
    )
