"""Stories to order: how long, how hard, how told, and with how many wrong answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from eval.errors import BadValue, UnknownName
from eval.pocket.draft import Draft
from eval.pocket.habits import Habits
from eval.pocket.simulate import chance
from eval.pocket.solver import STRATEGIES, Solver, Told
from eval.pocket.stories import Difficulty, story
from eval.pocket.suites import owner

PATIENCE = 50_000  # stories drawn for one that is as ordered


@dataclass(frozen=True, kw_only=True)
class World:
    """What the stories of a data set have in common.

    `difficulty` says their length, numbers and distractors; `chance` bounds the share of the
    solver's solutions that are right; `strategy` is how it tells them; `noise` is the share of
    answers that are wrong.
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
    """A problem, a solution told by the solver, and the answer that a data set states."""

    draft: Draft
    told: Told
    chance: float
    stated: str

    @property
    def labels(self) -> list[bool]:
        """Whether each line of the solution is right."""
        return [right for _, right in self.told.lines]


def cases(world: World, n: int, seed: int = 0) -> Iterator[Case]:
    """So many cases of distinct forms that no valid or test split has.

    Raises:
        BadValue: stories of this chance are too rare.
    """
    random, seen = Random(f"world {seed}"), set[str]()
    strategy = STRATEGIES[world.strategy]
    for tried in count():
        if len(seen) == n:
            return
        if tried > PATIENCE * n:
            raise BadValue(f"chance={world.chance}: {len(seen)} of {n} stories found, ask for less")
        events = random.randint(*world.difficulty.events)
        made = story(random, world.opening, events, world.difficulty, world.language)
        if made.form in seen or not owner(made.form).endswith("train"):
            continue
        likely = chance(made, world.habits, strategy)
        if not world.chance[0] <= likely <= world.chance[1]:
            continue
        seen.add(made.form)
        yield case(world, made, likely, random)


def case(world: World, made: Draft, likely: float, random: Random) -> Case:
    """The story told once, with the right answer or one that is off by a little."""
    solver = Solver(
        errs=lambda _kind, _cue, rate: random.random() < rate,
        language=world.language,
        habits=world.habits,
        strategy=STRATEGIES[world.strategy],
    )
    told, stated = solver.tell(made), made.answer
    if random.random() < world.noise:
        stated = str(int(made.answer) + random.choice((-10, -1, 1, 2, 10)))
    return Case(draft=made, told=told, chance=likely, stated=stated)
