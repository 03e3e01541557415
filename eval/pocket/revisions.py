"""Revisions: a worked solution with one step calculated wrongly, and its value carried through."""

from dataclasses import dataclass, field
from random import Random

from eval.pocket.draft import Draft
from eval.pocket.plan import Cue
from eval.pocket.solver import MISTAKES_OF_RESULTS, Solver
from eval.pocket.steps import step_verdicts

WRONG_STEPS = 2  # the calculation, and the boxed answer


@dataclass
class OneMistake:
    """Decides which results a solver gets wrong: one alone. It reads every step as it is.

    Attributes:
        place: index of the mistake among the decisions about results; -1 for no mistake.
        decisions: number of decisions about results up to now.
    """

    place: int
    decisions: int = field(default=0, init=False)

    def __call__(self, kind: str, _context: Cue, _rate: float) -> bool:
        """Return whether a decision is the mistake."""
        if kind not in MISTAKES_OF_RESULTS:
            return False
        self.decisions += 1
        return self.decisions - 1 == self.place


def solve_with(draft: Draft, errs: OneMistake) -> str:
    """Return the text of the solution whose mistakes `errs` decides on."""
    return Solver(errs=errs, language=draft.language).solve(draft).text


def mistake_places(draft: Draft) -> range:
    """Return the places at which the right solution of a problem could have a wrong result."""
    errs = OneMistake(-1)
    solve_with(draft, errs)
    return range(errs.decisions)


def revision(draft: Draft, place: int) -> str | None:
    """Return the solution with a wrong result at a place; None unless that is its only wrong step.

    Its other equations hold for the numbers in them, and its answer is wrong.
    """
    text = solve_with(draft, OneMistake(place))
    verdicts = [is_right for _, is_right in step_verdicts(draft.question, draft.answer, text)]
    is_revision = not verdicts[-1] and verdicts.count(False) == WRONG_STEPS
    return text if is_revision else None


def random_revision(draft: Draft, random: Random) -> str | None:
    """Return a random revision of a problem's solution; None if it has none."""
    places = mistake_places(draft)
    found = (revision(draft, place) for place in random.sample(places, len(places)))
    return next((text for text in found if text is not None), None)
