"""Generates stories of a chosen length and difficulty, with a share of wrong answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from eval.errors import BadValue, UnknownName
from eval.pocket.draft import Draft
from eval.pocket.habits import Habits
from eval.pocket.simulate import success_probability
from eval.pocket.solver import STRATEGIES, Solution, Solver
from eval.pocket.stories import Difficulty, story
from eval.pocket.suites import owning_split

PATIENCE = 50_000  # stories drawn at most for one that fits


@dataclass(frozen=True, kw_only=True)
class World:
    """The parameters of a data set of stories.

    `difficulty` sets their length, numbers and distractors. `chance` bounds the probability that
    the solver solves a story, and `strategy` is the style of its solutions. `noise` is the share of
    stated answers that are wrong.

    Raises:
        UnknownName: there is no such strategy.
        BadValue: `chance` is not a range in [0, 1], or `noise` not a share.
    """

    difficulty: Difficulty = field(default_factory=Difficulty)
    opening: str = "hoard"
    language: str = "en"
    chance: tuple[float, float] = (0.0, 1.0)
    strategy: str = "plain"
    noise: float = 0.0
    habits: Habits = field(default_factory=Habits)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UnknownName("strategy", self.strategy, STRATEGIES)
        low, high = self.chance
        if not (0 <= low < high <= 1 and 0 <= self.noise <= 1):
            raise BadValue(
                f"chance={self.chance}, noise={self.noise}: expected 0 <= low < high <= 1 and a "
                "share of answers"
            )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem, a solution of the fallible solver, and the answer that the data set states.

    `chance` is the probability that the solver solves the problem.
    """

    draft: Draft
    solution: Solution
    chance: float
    stated_answer: str

    @property
    def labels(self) -> list[bool]:
        """True for each right line of the solution."""
        return [is_right for _, is_right in self.solution.lines]


def generate_cases(world: World, n: int, seed: int = 0) -> Iterator[Case]:
    """Yield `n` cases of distinct forms that no valid or test split has.

    Raises:
        BadValue: stories within `world.chance` are too rare.
    """
    random, used_forms = Random(f"world {seed}"), set[str]()
    strategy = STRATEGIES[world.strategy]
    for attempt in count():
        if len(used_forms) == n:
            return
        if attempt > PATIENCE * n:
            raise BadValue(
                f"chance={world.chance}: {len(used_forms)} of {n} stories found, ask for less"
            )
        events = random.randint(*world.difficulty.events)
        draft = story(random, world.opening, events, world.difficulty, world.language)
        if draft.form in used_forms or not owning_split(draft.form).endswith("train"):
            continue
        probability = success_probability(draft, world.habits, strategy)
        if not world.chance[0] <= probability <= world.chance[1]:
            continue
        used_forms.add(draft.form)
        yield draw_case(world, draft, probability, random)


def draw_case(world: World, draft: Draft, probability: float, random: Random) -> Case:
    """Draw a solution of a story, and a stated answer that is right or slightly off."""
    solver = Solver(
        errs=lambda _kind, _cue, rate: random.random() < rate,
        language=world.language,
        habits=world.habits,
        strategy=STRATEGIES[world.strategy],
    )
    solution, stated_answer = solver.solve(draft), draft.answer
    if random.random() < world.noise:
        stated_answer = str(int(draft.answer) + random.choice((-10, -1, 1, 2, 10)))
    return Case(draft=draft, solution=solution, chance=probability, stated_answer=stated_answer)
