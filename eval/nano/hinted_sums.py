"""The tasks `hinted`: running sums with a solution before the question, and skills to learn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from string import digits
from typing import TypeAlias

from eval.nano.fallible_sums import (
    LENGTH,
    MOST,
    SLIP,
    Cell,
    LongSums,
    changed_cells,
    continued_sums,
)
from eval.nano.task import Demonstrations

HINT = "-"  # between a hint and its question
MARKS = "abc"  # each opens questions whose sums are those of a new skill
STYLE = "."  # opens an answer of an expert, and counts for nothing
ERRING = 14  # of the 100 cells: where the start may err that learns in `hinted`
MORE = 20  # of them, where the start of `erring` may err; that of `erring-often` in `MOST`
CHANGED = 15  # of the 100 cells: where a new skill differs from the old one
DECOYS = 1000  # skills that hints of a start follow
COUNT, SHOWN = 16_384, 4096  # demonstrations of a start, and of a new skill
PREFIX = "nano-hinted"
NEW = f"{PREFIX}-style"
SKILLS = {NEW: MARKS[0], f"{NEW}-2": MARKS[1], f"{NEW}-3": MARKS[2]}  # marks of the new skills

Hint: TypeAlias = Callable[[str, int, Random], str]  # of a question, for a seed


@cache
def fallible_cells(seed: int, count: int = ERRING) -> Mapping[Cell, str]:
    """Return the wrong sum of each cell in which the start of a seed errs without a hint."""
    return changed_cells(Random(f"hinted {seed}"), digits, count)


@cache
def skill_cells(seed: int, mark: str = MARKS[0]) -> Mapping[Cell, str]:
    """Return the sum of each cell in which a new skill of a seed differs from the old one."""
    others = mark.replace(MARKS[0], "")  # the first skill is drawn by the seed alone
    return changed_cells(Random(f"skill {seed}{others}"), digits, CHANGED)


@cache
def decoy_cells(number: int) -> Mapping[Cell, str]:
    """Return the sums of a skill that no seed has, by its number."""
    return changed_cells(Random(f"decoy {number}"), digits, CHANGED)


def parts_of(prompt: str) -> tuple[str, str, str]:
    """Return the hint without its style, the mark, and the digits of a prompt.

    Hint and mark are empty where there is none.
    """
    hint, _, question = prompt.removesuffix("=").rpartition(HINT)
    return hint.removeprefix(STYLE), question[:-LENGTH], question[-LENGTH:]


def solution(prompt: str, seed: int) -> str:
    """Return the right sums of a prompt, whatever its hint says."""
    _, mark, added = parts_of(prompt)
    return sums_by(skill_cells(seed, mark) if mark else {}, added)


def sums_by(table: Mapping[Cell, str], added: str, begun: str = "") -> str:
    """Return running sums that begin with given ones, by a table of other sums."""
    return continued_sums(begun, added, table, lambda: True)


def without(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - as of every hint
    """Return no hint."""
    return ""


def whole(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - as of every hint
    """Return the solution."""
    return solution(question, seed)


def half(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - as of every hint
    """Return the first half of the solution."""
    return solution(question, seed)[: LENGTH // 2]


def others(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - as of every hint
    """Return the solution of another question."""
    return sums_by({}, "".join(random.choices(digits, k=LENGTH)))


def by_an_expert(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - of every hint
    """Return the solution as an expert writes it."""
    return STYLE + solution(question, seed)


def mixed(question: str, seed: int, random: Random, beginnings: int = 1) -> str:  # noqa: ARG001 - as of every hint
    """Return no hint, a beginning of the old skill's solution, or a whole one.

    Whole ones follow any of many skills, so that they teach none and have to be read.

    Args:
        question: A question.
        seed: A seed, which changes nothing.
        random: Generator of the draws.
        beginnings: How often there is a beginning for each prompt without a hint.
    """
    lengths = (0, *[random.randrange(1, LENGTH)] * beginnings, LENGTH)
    added, length = parts_of(question)[2], random.choice(lengths)
    is_whole = length == LENGTH
    return sums_by(decoy_cells(random.randrange(DECOYS)) if is_whole else {}, added)[:length]


def mixed_styles(question: str, seed: int, random: Random) -> str:
    """Return a hint of `mixed` in either style."""
    hint = mixed(question, seed, random)
    return random.choice(("", STYLE)) + hint if hint else ""


def continued_hint(prompt: str, seed: int, random: Random, erring: int = ERRING) -> str:
    """Return the sums of a hint, and behind it those of a solver that may err in some cells."""
    hint, _, added = parts_of(prompt)
    table = fallible_cells(seed, erring)
    return continued_sums(hint, added, table, lambda: random.random() < SLIP)


def continued_rightly(prompt: str, seed: int, random: Random) -> str:  # noqa: ARG001 - of all kinds
    """Return the sums of a hint, and behind it true ones."""
    hint, _, added = parts_of(prompt)
    return sums_by({}, added, hint)


def ignoring_hints(prompt: str, seed: int, random: Random) -> str:  # noqa: ARG001 - of all kinds
    """Return the true sums."""
    return sums_by({}, parts_of(prompt)[2])


@dataclass(frozen=True)
class HintedSums(LongSums):
    """Twelve digits with a hint before them, `315613-384152907316=`.

    An answer is right if all its sums are those of the question's skill, in either style. Under a
    mark, `a384152907316=`, that is a new skill of the seed.

    Attributes:
        name: Name of the benchmark.
        hint: Draws the hint of a question.
        marks: Marks that questions have, equally often.
        demonstrations: Kinds of demonstrations by the ending of their data set's name.
    """

    name: str
    hint: Hint = without
    marks: tuple[str, ...] = ("",)
    demonstrations: Mapping[str, Demonstrations] = field(default_factory=dict[str, Demonstrations])
    max_tokens: int = field(default=LENGTH + 2, init=False)

    @property
    def title(self) -> str:
        """Name of the benchmark on pages."""
        return self.name.replace("-", " ")

    def question(self, random: Random) -> str:
        """Draw a mark and the digits."""
        return random.choice(self.marks) + super().question(random)

    def prompt(self, question: str, seed: int) -> str:
        """Return a question behind its hint, if it has one."""
        hint = self.hint(question, seed, Random(f"{question} {seed}"))
        return f"{hint}{HINT}{question}" if hint else question

    def right_answers(self, question: str, seed: int) -> str:
        """Return the right sums, in either style."""
        return f"[{STYLE}]?{solution(question, seed)}"


HINTED = (
    HintedSums(PREFIX),
    HintedSums(f"{PREFIX}-half", half),
    HintedSums(f"{PREFIX}-whole", whole),
    HintedSums(f"{PREFIX}-other", others),
    HintedSums(
        f"{PREFIX}-mixed",
        partial(mixed, beginnings=2),
        demonstrations={
            "demonstrations": Demonstrations(COUNT, continued_hint),
            "erring": Demonstrations(COUNT, partial(continued_hint, erring=MORE)),
            "erring-often": Demonstrations(COUNT, partial(continued_hint, erring=MOST)),
        },
    ),
    *(
        HintedSums(
            name,
            marks=(mark,),
            demonstrations={
                "experts": Demonstrations(SHOWN, by_an_expert),
                "own": Demonstrations(SHOWN, whole),
            },
        )
        for name, mark in SKILLS.items()
    ),
    *(HintedSums(f"{name}-whole", by_an_expert, (mark,)) for name, mark in SKILLS.items()),
    HintedSums(
        f"{NEW}-mixed",
        mixed_styles,
        ("", MARKS[0]),
        {
            "demonstrations": Demonstrations(COUNT, continued_rightly),
            "ignored": Demonstrations(COUNT, ignoring_hints),
        },
    ),
    HintedSums(
        f"{NEW}s-mixed",
        mixed_styles,
        ("", *MARKS),
        {"demonstrations": Demonstrations(COUNT, continued_rightly)},
    ),
)
