"""Computes the accuracy of the fallible solver exactly, by enumerating its decisions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from eval.pocket.draft import Draft
from eval.pocket.habits import Habits
from eval.pocket.plan import Cue
from eval.pocket.solver import PLAIN, Solver, Strategy

NEGLIGIBLE = 1e-4  # a path of a smaller probability is left out


@dataclass
class Path:
    """The decisions of one solution: those in `fixed` first, then no mistake.

    `decisions` collects each decision, whether it is a mistake, with its error rate.
    """

    fixed: list[bool]
    decisions: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])

    def __call__(self, kind: str, context: Cue, rate: float) -> bool:  # noqa: ARG002 - as every `errs`
        """Return whether the next decision is a mistake."""
        place = len(self.decisions)
        is_mistake = self.fixed[place] if place < len(self.fixed) else False
        self.decisions.append((is_mistake, rate))
        return is_mistake

    def probability(self, n: int) -> float:
        """Return the probability of the first `n` decisions."""
        product = 1.0
        for is_mistake, rate in self.decisions[:n]:
            product *= rate if is_mistake else 1 - rate
        return product


def success_probability(draft: Draft, habits: Habits, strategy: Strategy = PLAIN) -> float:
    """Return the probability that a solution of the fallible solver has the right answer."""
    total, waiting = 0.0, [list[bool]()]
    while waiting:
        path = Path(waiting.pop())
        solver = Solver(errs=path, language=draft.language, habits=habits, strategy=strategy)
        if solver.solve(draft).answer == draft.answer:
            total += path.probability(len(path.decisions))
        for place in range(len(path.fixed), len(path.decisions)):
            branch = [is_mistake for is_mistake, _ in path.decisions[:place]] + [True]
            if path.probability(place) * path.decisions[place][1] > NEGLIGIBLE:
                waiting.append(branch)
    return total


def is_majority_right(draft: Draft, habits: Habits, strategy: Strategy = PLAIN) -> bool:
    """Return whether the most probable decision in every context leads to the right answer."""

    def majority(kind: str, context: Cue, rate: float) -> bool:  # noqa: ARG001 - as every `errs`
        return rate > 0.5

    solver = Solver(errs=majority, language=draft.language, habits=habits, strategy=strategy)
    return solver.solve(draft).answer == draft.answer


@dataclass(frozen=True, kw_only=True)
class SimulatedScores:
    """Accuracies in percent: of the most probable decisions, of one sample, and pass@k."""

    greedy: float
    sampled: float
    pass_at_k: float


def simulate(
    drafts: Iterable[Draft], habits: Habits, k: int = 16, strategy: Strategy = PLAIN
) -> SimulatedScores:
    """Return the accuracies of the fallible solver over some problems."""
    problems = list(drafts)
    probabilities = [success_probability(draft, habits, strategy) for draft in problems]
    greedy = sum(is_majority_right(draft, habits, strategy) for draft in problems)
    return SimulatedScores(
        greedy=100 * greedy / len(problems),
        sampled=100 * sum(probabilities) / len(problems),
        pass_at_k=100 * sum(1 - (1 - p) ** k for p in probabilities) / len(problems),
    )
