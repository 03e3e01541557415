"""The four suites of the pocket world, their splits and test sets, and their digest."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Container
from functools import cache
from itertools import accumulate, count
from random import Random

from eval.errors import BadValue, UnknownName
from eval.pocket.draft import Draft
from eval.pocket.exercises import EXERCISES
from eval.pocket.stories import Difficulty, story
from eval.sets.problem import Problem

SIZES = {"train": 6000, "valid": 300, "test": 1000}
DRAWS = 10  # test sets of a suite; draw 0 is the published one
PATIENCE = 20_000  # attempts before a kind of problem counts as used up
STORY = Difficulty()
PAIRED = "pocket-mgsm-zh"  # has the stories of pocket-gsm8k in its valid and test splits
# The share of the forms, in thousandths, that belongs to each split of a suite.
STORIES = {
    **{f"pocket-gsm8k test {draw}": 30 for draw in range(DRAWS)},
    **{f"pocket-cmath test {draw}": 30 for draw in range(DRAWS)},
    "pocket-gsm8k valid": 30,
    "pocket-cmath valid": 30,
    "pocket-gsm8k train": 120,
    "pocket-mgsm-zh train": 110,
    "pocket-cmath train": 110,
}
ALONE = {
    **{f"pocket-math test {draw}": 60 for draw in range(DRAWS)},
    "pocket-math valid": 40,
    "pocket-math train": 360,
}

Generator = Callable[[Random, int], Draft]


BOUNDS = [list(accumulate(shares.values())) for shares in (STORIES, ALONE)]
CELLS = (tuple(STORIES), tuple(ALONE))


def owning_split(form: str) -> str:
    """Return the suite, split and draw that alone may have a problem of this form, by its hash."""
    place = int.from_bytes(hashlib.sha256(form.encode()).digest()[:8]) % 1000
    kinds = 0 if form.startswith("story ") else 1
    return CELLS[kinds][bisect_right(BOUNDS[kinds], place)]


def english(random: Random, turn: int) -> Draft:
    """Draw an English story; the turns alternate between hoards, rates, baskets, comparisons."""
    return word_problem(random, turn, "en")


def chinese(random: Random, turn: int) -> Draft:
    """Draw a Chinese story; the turns alternate between hoards, rates, baskets, comparisons."""
    return word_problem(random, turn, "zh")


def word_problem(random: Random, turn: int, language: str) -> Draft:
    """Draw a story of 3 or 4 events, or fewer if its opening has steps of its own."""
    opening, events = (("hoard", 3), ("rate", 2), ("basket", 1), ("compared", 3))[turn % 4]
    additional = turn // 4 % 2 if opening != "compared" else 0
    return story(random, opening, events + additional, STORY, language)


def exercises(random: Random, turn: int) -> Draft:
    """Draw an exercise; the turns alternate between the kinds and between 2 to 5 steps."""
    return EXERCISES[turn % 4](random, 2 + turn // 4 % 4)


def grades(random: Random, turn: int) -> Draft:
    """Draw a Chinese story of 3 to 5 steps; the turns alternate between three openings."""
    opening, events = grade_story(turn)
    return story(random, opening, events, STORY, "zh")


def grade_story(turn: int) -> tuple[str, int]:
    """Return the opening and the number of events of a story of 3 to 5 steps."""
    opening, before = (("hoard", 0), ("rate", 1), ("share", 2))[turn % 3]
    return opening, max(2, 3 + turn // 3 % 3 - before)


SUITES: dict[str, Generator] = {
    "pocket-gsm8k": english,
    "pocket-math": exercises,
    "pocket-mgsm-zh": chinese,
    "pocket-cmath": grades,
}


@cache
def drafts(suite: str, split: str, draw: int = 0) -> tuple[Draft, ...]:
    """Return all drafts of a split; their forms are distinct and belong to no other split.

    The Chinese suite PAIRED has the forms of the English suite, in the same order.

    Raises:
        UnknownName: the suite or split does not exist.
        BadValue: the draw does not exist.
    """
    if suite not in SUITES:
        raise UnknownName("pocket suite", suite, SUITES)
    if split not in SIZES:
        raise UnknownName("split", split, SIZES)
    if not 0 <= draw < (DRAWS if split == "test" else 1):
        raise BadValue(f"draw={draw} of {suite}/{split}: expected 0 to {DRAWS - 1}, of test alone")
    is_paired = suite == PAIRED and split != "train"
    cell = f"{'pocket-gsm8k' if is_paired else suite} {split}" + f" {draw}" * (split == "test")
    generator, random = SUITES[suite], Random(cell)
    by_form: dict[str, Draft] = {}
    for turn in count():
        draft = draw_new(generator, random, turn, cell, by_form)
        by_form[draft.form] = draft
        if len(by_form) == SIZES[split]:
            break
    return tuple(by_form.values())


def draw_new(
    generator: Generator, random: Random, turn: int, cell: str, used_forms: Container[str]
) -> Draft:
    """Draw a draft whose form belongs to the cell and is not in `used_forms`.

    Raises:
        AssertionError: no such draft in PATIENCE attempts.
    """
    for _ in range(PATIENCE):
        draft = generator(random, turn)
        if draft.form not in used_forms and owning_split(draft.form) == cell:
            return draft
    raise AssertionError(f"{cell}: the kind of turn {turn} has hardly any form left")


def pocket_problems(
    suite: str, split: str = "test", n: int | None = None, draw: int = 0
) -> list[Problem]:
    """Return the first `n` problems of a split, or all of them.

    Raises:
        UnknownName: the suite or split does not exist.
        BadValue: the split has fewer than `n` problems, or the draw does not exist.
    """
    if n is not None and n > SIZES.get(split, n):
        raise BadValue(f"{n} problems of {suite}/{split} asked for, it has {SIZES[split]}")
    prefix = f"{suite}-{split}" + f"-draw-{draw}" * bool(draw)
    return [
        Problem(
            id=f"{prefix}-{number}",
            question=draft.question,
            answer=draft.answer,
            language=draft.language,
            solution=draft.solution,
            level=draft.level,
            subject=draft.subject,
            exact_form=draft.exact_form,
        )
        for number, draft in enumerate(drafts(suite, split, draw)[:n])
    ]


def pocket_digest() -> str:
    """Return the SHA-256 of every problem of every split of draw 0, the version of the world."""
    digest = hashlib.sha256()
    for suite in SUITES:
        for split in SIZES:
            for draft in drafts(suite, split):
                fields = draft.question, draft.answer, draft.solution, draft.exact_form
                digest.update(repr(fields).encode())
    return digest.hexdigest()
