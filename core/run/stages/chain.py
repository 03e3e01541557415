"""The chain of stages that a run is: data, start, train, and evaluations before and after."""

from dataclasses import dataclass
from functools import cached_property

from core.run.resolve import Resolved
from core.run.stages.data import Data
from core.run.stages.evaluate import Evaluate, evaluations
from core.run.stages.stage import Policy, Stage
from core.run.stages.start import Start
from core.run.stages.train import Train


@dataclass(frozen=True)
class Chain:
    """The stages of one arm at a scale with a seed."""

    resolved: Resolved
    seed: int = 0

    @cached_property
    def start(self) -> Start:
        """The starting model."""
        return Start(self.resolved.run.model)

    @cached_property
    def train(self) -> Train | None:
        """The training, if the family has one."""
        run, family = self.resolved.run, self.resolved.family
        if not family.trains:
            return None
        rows = Data(run.data, family)
        return Train(resolved=self.resolved, seed=self.seed, data=rows, begin=self.start)

    @property
    def policy(self) -> Policy:
        """What the run is about: the trained model, or the model as it is."""
        return self.train or self.start

    def evaluations(self, policy: Policy) -> list[Evaluate]:
        """All that is asked of the starting model, or of the trained one."""
        return evaluations(self.resolved, policy)

    @property
    def start_stages(self) -> list[Stage]:
        """Loading and scoring the starting model, which every arm and seed shares."""
        return [self.start, *self.evaluations(self.start)]

    @property
    def own_stages(self) -> list[Stage]:
        """Training, and scoring what the run is about."""
        trained = [self.train.data, self.train] if self.train else []
        return [*trained, *self.evaluations(self.policy)]

    @property
    def stages(self) -> list[Stage]:
        """Every stage once, in the order in which one reads a plan."""
        trained = [self.train.data, self.start, self.train] if self.train else [self.start]
        scored = self.evaluations(self.start) + self.evaluations(self.policy)
        return list({stage.key: stage for stage in (*trained, *scored)}.values())
