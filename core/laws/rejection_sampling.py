"""Statistical rejection sampling by enumeration: of every outcome, with its probability."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import fsum, prod
from statistics import fmean

from core.collect.statistical_rejection import accepted_places
from core.equations.advantage_equations import Numbers

CASES = ((0.2, 1.0, 1.4, 0.5), (0.0, 0.0, 1.0, 1.0), (-1.0, 0.0, 0.3, 2.5))
COUNT = 2  # accepted candidates of four


@dataclass
class Decisions:
    """Decisions of one run of `accepted_places`: those of a prefix, then acceptance.

    Attributes:
        prefix: The first decisions.
        decisions: All decisions so far.
        chances: The probability of each.
        branches: Prefixes of other runs, each with one more rejection.
    """

    prefix: tuple[bool, ...]
    decisions: list[bool] = field(default_factory=list[bool])
    chances: Numbers = field(default_factory=list[float])
    branches: list[tuple[bool, ...]] = field(default_factory=list[tuple[bool, ...]])

    def __call__(self, chance: float) -> bool:
        """Return whether a candidate of this chance is accepted."""
        place = len(self.decisions)
        is_in_prefix = place < len(self.prefix)
        is_accepted = self.prefix[place] if is_in_prefix else chance > 0
        if not is_in_prefix and 0 < chance < 1:
            self.branches.append((*self.decisions, False))
        self.decisions.append(is_accepted)
        self.chances.append(chance if is_accepted else 1 - chance)
        return is_accepted


def outcomes(
    rewards: Sequence[float], beta: float, count: int
) -> Iterator[tuple[float, list[int]]]:
    """Yield the probability of every outcome of `accepted_places`, and the accepted places."""
    prefixes: list[tuple[bool, ...]] = [()]
    while prefixes:
        decisions = Decisions(prefixes.pop())
        places = accepted_places(rewards, beta, count, decisions)
        prefixes += decisions.branches
        yield prod(decisions.chances), places


def mean_accepted(rewards: Sequence[float], beta: float, count: int = COUNT) -> float:
    """Return the expected mean reward of `count` accepted candidates in this order."""
    return fsum(
        chance * fmean(rewards[place] for place in places)
        for chance, places in outcomes(rewards, beta, count)
    )


def accepted_reward(*, beta: float) -> Numbers:
    """Return the expected mean reward of accepted candidates for each of several rewards.

    Candidates are in every order equally often, as independent samples are.
    """
    return [fmean(mean_accepted(order, beta) for order in permutations(case)) for case in CASES]
