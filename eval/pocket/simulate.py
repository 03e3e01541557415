"""What the fallible solver scores, exactly: all its ways through a problem with their chances."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from eval.pocket.draft import Draft
from eval.pocket.habits import Habits
from eval.pocket.plan import Cue
from eval.pocket.solver import PLAIN, Solver, Strategy

LEAST = 1e-4  # a way of a smaller chance is left out


@dataclass
class Path:
    """The decisions of one way through a problem: those given first, then no mistake."""

    given: list[bool]
    made: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])

    def __call__(self, kind: str, context: Cue, rate: float) -> bool:  # noqa: ARG002 - as every `errs`
        """The next decision."""
        place = len(self.made)
        wrong = self.given[place] if place < len(self.given) else False
        self.made.append((wrong, rate))
        return wrong

    def chance(self, until: int) -> float:
        """The chance of the first decisions."""
        found = 1.0
        for wrong, rate in self.made[:until]:
            found *= rate if wrong else 1 - rate
        return found


def chance(draft: Draft, habits: Habits, strategy: Strategy = PLAIN) -> float:
    """The chance that a solution of the fallible solver ends with the right answer."""
    right, waiting = 0.0, [list[bool]()]
    while waiting:
        path = Path(waiting.pop())
        solver = Solver(errs=path, language=draft.language, habits=habits, strategy=strategy)
        if solver.tell(draft).answer == draft.answer:
            right += path.chance(len(path.made))
        for place in range(len(path.given), len(path.made)):
            other = [wrong for wrong, _ in path.made[:place]] + [True]
            if path.chance(place) * path.made[place][1] > LEAST:
                waiting.append(other)
    return right


def likeliest(draft: Draft, habits: Habits, strategy: Strategy = PLAIN) -> bool:
    """Whether the solver that takes the majority's side in every context is right."""

    def majority(kind: str, context: Cue, rate: float) -> bool:  # noqa: ARG001 - as every `errs`
        return rate > 0.5

    solver = Solver(errs=majority, language=draft.language, habits=habits, strategy=strategy)
    return solver.tell(draft).answer == draft.answer


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Accuracy in percent: of the majority's side, of one solution drawn, of any of K drawn."""

    greedy: float
    sampled: float
    passed: float


def simulated(
    drafts: Iterable[Draft], habits: Habits, k: int = 16, strategy: Strategy = PLAIN
) -> Simulated:
    """What the solver scores on these problems."""
    found = list(drafts)
    chances = [chance(draft, habits, strategy) for draft in found]
    return Simulated(
        greedy=100 * sum(likeliest(d, habits, strategy) for d in found) / len(found),
        sampled=100 * sum(chances) / len(found),
        passed=100 * sum(1 - (1 - p) ** k for p in chances) / len(found),
    )
