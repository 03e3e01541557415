"""The four suites of the pocket world, their splits and draws, and their digest."""

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
DRAWS = 10  # of test problems; draw 0 is the published one
PATIENCE = 20_000  # draws before a kind counts as used up
STORY = Difficulty()
PAIRED = "pocket-mgsm-zh"  # tells the stories of pocket-gsm8k, but for those to train on
# Of 1,000 forms, how many are owned by a split of a suite; each draw of the test split its own.
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


def owner(form: str) -> str:
    """The split of the suite that alone may ask a problem of this form, by its hash."""
    place = int.from_bytes(hashlib.sha256(form.encode()).digest()[:8]) % 1000
    kinds = 0 if form.startswith("story ") else 1
    return CELLS[kinds][bisect_right(BOUNDS[kinds], place)]


def draw_of(seed: int) -> int:
    """The draw of test problems on which a run of this seed is scored."""
    return seed % DRAWS


def english(random: Random, turn: int) -> Draft:
    """Hoards, rates, baskets and comparisons in turn, in English."""
    return told(random, turn, "en")


def chinese(random: Random, turn: int) -> Draft:
    """The same in Chinese."""
    return told(random, turn, "zh")


def told(random: Random, turn: int, language: str) -> Draft:
    """A story of 3 or 4 events, fewer where its opening takes steps of its own."""
    opening, events = (("hoard", 3), ("rate", 2), ("basket", 1), ("compared", 3))[turn % 4]
    more = turn // 4 % 2 if opening != "compared" else 0
    return story(random, opening, events + more, STORY, language)


def exercises(random: Random, turn: int) -> Draft:
    """Exercise kinds in turn, of 2 to 5 steps in turn."""
    return EXERCISES[turn % 4](random, 2 + turn // 4 % 4)


def grades(random: Random, turn: int) -> Draft:
    """Hoards, rates and shares of a number in turn, of 3 to 5 steps in turn, in Chinese."""
    opening, before = (("hoard", 0), ("rate", 1), ("share", 2))[turn % 3]
    events = 3 + turn // 3 % 3 - before
    return story(random, opening, max(2, events), STORY, "zh")


SUITES: dict[str, Generator] = {
    "pocket-gsm8k": english,
    "pocket-math": exercises,
    "pocket-mgsm-zh": chinese,
    "pocket-cmath": grades,
}


@cache
def drafts(suite: str, split: str, draw: int = 0) -> tuple[Draft, ...]:
    """All drafts of a split, whose forms are distinct and no other split's.

    The Chinese suite PAIRED has the forms, one by one, of the English one.

    Raises:
        UnknownName: for a suite or split that does not exist.
        BadValue: there is no such draw.
    """
    if suite not in SUITES:
        raise UnknownName("pocket suite", suite, SUITES)
    if split not in SIZES:
        raise UnknownName("split", split, SIZES)
    if not 0 <= draw < (DRAWS if split == "test" else 1):
        raise BadValue(f"draw={draw} of {suite}/{split}: expected 0 to {DRAWS - 1}, of test alone")
    paired = suite == PAIRED and split != "train"
    cell = f"{'pocket-gsm8k' if paired else suite} {split}" + f" {draw}" * (split == "test")
    generator, random = SUITES[suite], Random(cell)
    found: dict[str, Draft] = {}
    for turn in count():
        made = fresh(generator, random, turn, cell, found)
        found[made.form] = made
        if len(found) == SIZES[split]:
            break
    return tuple(found.values())


def fresh(
    generator: Generator, random: Random, turn: int, cell: str, found: Container[str]
) -> Draft:
    """A draft of a form that is this cell's and not in `found`."""
    for _ in range(PATIENCE):
        made = generator(random, turn)
        if made.form not in found and owner(made.form) == cell:
            return made
    raise AssertionError(f"{cell}: the kind of turn {turn} has hardly any form left")


def pocket_problems(
    suite: str, split: str = "test", n: int | None = None, draw: int = 0
) -> list[Problem]:
    """The first `n` problems of a split, or all of them.

    Raises:
        BadValue: if the split has fewer than `n` problems.
    """
    if n is not None and n > SIZES.get(split, n):
        raise BadValue(f"{n} problems of {suite}/{split} asked for, it has {SIZES[split]}")
    named = f"{suite}-{split}" + f"-draw-{draw}" * bool(draw)
    return [
        Problem(
            id=f"{named}-{number}",
            question=made.question,
            answer=made.answer,
            language=made.language,
            solution=made.solution,
            level=made.level,
            subject=made.subject,
            exact_form=made.exact_form,
        )
        for number, made in enumerate(drafts(suite, split, draw)[:n])
    ]


def pocket_digest() -> str:
    """SHA-256 over every problem of every split and of draw 0: the version of the pocket world."""
    digest = hashlib.sha256()
    for suite in SUITES:
        for split in SIZES:
            for made in drafts(suite, split):
                asked = made.question, made.answer, made.solution, made.exact_form
                digest.update(repr(asked).encode())
    return digest.hexdigest()
