"""The request to run a paper: arms, seeds, looks at the claims, and how the runs are started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.families.worlds import World
from core.paper import Paper
from eval.stats.seeds import Look


@dataclass(frozen=True, kw_only=True)
class Order:
    """A request to run arms of a paper with some seeds, and to judge its claims.

    Attributes:
        paper: The paper.
        scale: The name of the scale, as `--at` takes it.
        arms: The names of the arms; empty stands for the main arm.
        seeds: The seeds of each arm; `seeds_in` has those of arms in other worlds.
        looks: Interim analyses of the claims in the pocket world; other worlds have as many. The
            runs stop at the first look after which no claim is likely enough to be decided by later
            looks. Without looks, all seeds run before the claims are judged once.
        until: The number of looks after which the runs stop in any case; None for all of them.
        fair: Whether the arms that claims compare are also run at the best learning rate of their
            trials.
        recorded: Whether runs and trials that published or local records already hold are taken
            from these records instead of being run again.
        arguments: The settings from the command line, each as `name=value`.
        jobs: The largest number of processes or cluster jobs at a time.
        force: Whether finished stages are run again.
        cluster: The cluster that runs the units as jobs, see `core.spread.jobs`; None for
            processes on this machine.
        job: The options of a cluster job by name.
    """

    paper: Paper
    scale: str = "cpu"
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    looks: tuple[Look, ...] = ()
    until: int | None = None
    fair: bool = False
    recorded: bool = False
    arguments: tuple[str, ...] = ()
    jobs: int = 1
    force: bool = False
    cluster: str | None = None
    job: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms to run: those that are named, or else the main arm."""
        return self.arms or (self.paper.main_arm,)

    def seeds_in(self, world: World, looks: int | None = None) -> tuple[int, ...]:
        """Return the seeds of the arms in a world.

        Claims in a world of its own base are tested on the seeds and at the looks of that world.

        Args:
            world: The world.
            looks: The number of looks that the seeds are for; None for all.
        """
        has_own_seeds = self.fair and world.is_bare
        seeds = world.seeds if has_own_seeds else self.seeds
        if not self.looks:
            return seeds[: len(self.seeds)]
        until = (world.looks if has_own_seeds else self.looks)[:looks]
        return seeds[: until[-1].seeds if until else 0]
