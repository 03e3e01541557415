"""Test sets of the same Chinese stories with 0 to 5 distractors, as CMATH has them."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from random import Random

from eval.errors import BadValue
from eval.pocket.draft import Draft
from eval.pocket.stories import KINDS, Difficulty, Skeleton, draw_distractors, draw_within, story_of
from eval.pocket.suites import DRAWS, STORY, grade_story, owning_split
from eval.sets.problem import Problem

SIZE = 500  # stories of a test set
MOST = KINDS  # distractors
PLAIN = replace(STORY, distractors=0.0)


@dataclass(frozen=True)
class Story:
    """A story with `MOST` distractors, and the seed of its words."""

    skeleton: Skeleton
    words: int

    def draft(self, distractors: int) -> Draft:
        """Return the story with the first `distractors` of its distractors."""
        skeleton = replace(self.skeleton, distractors=self.skeleton.distractors[:distractors])
        return story_of(skeleton, self.words, "zh")


@cache
def stories(draw: int) -> tuple[Story, ...]:
    """Return the stories of a test set; their forms are distinct, and of no other split or suite.

    The forms are among those that belong to the test set of pocket-cmath of the same draw.
    """
    cell, random = f"pocket-cmath test {draw}", Random(f"distracted test {draw}")
    by_form: dict[str, Story] = {}
    for turn in count():
        made = draw_story(random, turn, PLAIN)
        form = made.draft(0).form
        if owning_split(form) == cell:
            by_form.setdefault(form, made)
        if len(by_form) == SIZE:
            break
    return tuple(by_form.values())


def draw_story(random: Random, turn: int, d: Difficulty) -> Story:
    """Draw a story of 3 to 5 steps; the turns alternate between three openings."""
    opening, events = grade_story(turn)
    skeleton = draw_within(random, opening, events, d)
    distractors = draw_distractors(random, events, d)
    return Story(replace(skeleton, distractors=distractors), random.getrandbits(32))


def distracted_problems(distractors: int, split: str, draw: int) -> list[Problem]:
    """Return the problems of a test set with this number of distractors in every story.

    Raises:
        BadValue: the split is not `test`, or the draw or the number of distractors does not exist.
    """
    if split != "test" or not 0 <= draw < DRAWS or not 0 <= distractors <= MOST:
        raise BadValue(
            f"{split} of draw {draw} with {distractors} distractors: expected test, a draw of 0 to "
            f"{DRAWS - 1}, and 0 to {MOST} distractors"
        )
    drafts = [made.draft(distractors) for made in stories(draw)]
    return [
        Problem(
            id=f"pocket-distractors-{distractors}-test-draw-{draw}-{number}",
            question=draft.question,
            answer=draft.answer,
            language=draft.language,
            solution=draft.solution,
            level=draft.level,
        )
        for number, draft in enumerate(drafts)
    ]
