"""Generators of benchmark problems: functions of a split and a draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.sets.problem import Problem

TEST = "test"


@dataclass(frozen=True)
class Generator:
    """A source of problems that are computed.

    With a number of `draws`, a run's seed selects one of that number of test sets, and all runs
    share the problems of the other splits. Without one, each seed has its own problems in every
    split.

    Attributes:
        problems: Returns the problems of a split and a draw.
        version: Text that changes whenever a problem does.
        draws: Number of test sets; None if every seed has its own problems.
    """

    problems: Callable[[str, int], Sequence[Problem]]
    version: str
    draws: int | None = None

    @property
    def is_drawn_by_seed(self) -> bool:
        """True if training and held-out problems depend on the draw too."""
        return self.draws is None

    def problems_of(self, split: str, draw: int) -> Sequence[Problem]:
        """Return the problems of a split, which depend on the draw only if they are to."""
        return self.problems(split, draw if split == TEST or self.is_drawn_by_seed else 0)
