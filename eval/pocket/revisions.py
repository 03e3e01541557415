"""Revisions: a worked solution with one step calculated wrongly, and its value carried through."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from eval.pocket.draft import Draft
from eval.pocket.plan import Cue
from eval.pocket.solver import MISTAKES_OF_RESULTS, Solver
from eval.pocket.steps import step_verdicts

WRONG_STEPS = 2  # the calculation, and the boxed answer


@dataclass
class OneMistake:
    """Decisions of a solver of which one alone is a mistake, of a result and not of reading.

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
    """Return the text of a solution with the mistake."""
    return Solver(errs=errs, language=draft.language).solve(draft).text


def mistakes(draft: Draft) -> range:
    """Return the places at which the right solution of a problem could have a wrong result."""
    errs = OneMistake(-1)
    solve_with(draft, errs)
    return range(errs.decisions)


def revision(draft: Draft, place: int) -> str | None:
    """Return the solution with a wrong result at a place; None unless that is its only wrong step.

    The other equations are right for the numbers that they have, and the answer is wrong.
    """
    text = solve_with(draft, OneMistake(place))
    verdicts = [is_right for _, is_right in step_verdicts(draft.question, draft.answer, text)]
    is_revision = not verdicts[-1] and verdicts.count(False) == WRONG_STEPS
    return text if is_revision else None


def revisions(draft: Draft, random: Random) -> Iterator[tuple[int, str]]:
    """Yield the revisions of a problem with their places, in random order."""
    places = mistakes(draft)
    for place in random.sample(places, len(places)):
        text = revision(draft, place)
        if text is not None:
            yield place, text


def revised_pair(draft: Draft, random: Random) -> tuple[str, str] | None:
    """Return the right solution and a random revision; None for a problem without revisions."""
    found = next(revisions(draft, random), None)
    return None if found is None else (draft.solution, found[1])
