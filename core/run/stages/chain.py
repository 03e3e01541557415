"""The chain of stages that a run is: data, start, train, and evaluations before and after."""

from dataclasses import dataclass
from functools import cached_property

from core.run.resolve import Resolved, resolve
from core.run.stages.data import Data
from core.run.stages.evaluate import Evaluate, evaluations
from core.run.stages.stage import Policy, Stage
from core.run.stages.start import Start
from core.run.stages.train import Train
from eval.errors import BadValue


@dataclass(frozen=True)
class Chain:
    """The stages of one arm at a scale with a seed; `waiting` are preparations that need it."""

    resolved: Resolved
    seed: int = 0
    waiting: tuple[str, ...] = ()

    @cached_property
    def before(self) -> "Chain | None":
        """The preparation that trains the model to begin with; the command line leaves it alone.

        It has one seed, such that all that begin with it begin with the same model.

        Raises:
            BadValue: preparations wait for each other, or one of them trains nothing.
        """
        resolved, name = self.resolved, self.resolved.prepared
        if name is None:
            return None
        if name in self.waiting:
            circle = " > ".join((*self.waiting, name))
            raise BadValue(f"{resolved.paper.slug}: preparations wait for each other: {circle}")
        own = resolve(resolved.paper, arm=name, scale=resolved.scale)
        if not own.family.trains:
            raise BadValue(f"{resolved.paper.slug}: the preparation {name} trains nothing")
        return Chain(own, waiting=(*self.waiting, name))

    @property
    def pretrained(self) -> str:
        """The model with which the first training begins."""
        return self.before.pretrained if self.before else self.resolved.run.model

    @property
    def preparations(self) -> list[Stage]:
        """All that is trained before, the first one first."""
        if self.before is None:
            return []
        return [*self.before.preparations, *self.before.training]

    @cached_property
    def start(self) -> Start:
        """The starting model."""
        trained = self.before.train if self.before else None
        return Start(self.resolved.run.model, trained, self.seed)

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

    @property
    def training(self) -> list[Stage]:
        """The rows, the starting model and the training; the model alone where there is none."""
        return [self.train.data, self.start, self.train] if self.train else [self.start]

    def evaluations(self, policy: Policy) -> list[Evaluate]:
        """All that is asked of the starting model, or of the trained one."""
        return evaluations(self.resolved, policy, self.seed)

    @property
    def start_stages(self) -> list[Stage]:
        """Loading and scoring the starting model, which every arm of this seed shares."""
        return [*self.preparations, self.start, *self.evaluations(self.start)]

    @property
    def own_stages(self) -> list[Stage]:
        """Training, and scoring what the run is about."""
        trained = [self.train.data, self.train] if self.train else []
        return [*trained, *self.evaluations(self.policy)]

    @property
    def stages(self) -> list[Stage]:
        """Every stage once, in the order in which one reads a plan."""
        trained = [*self.preparations, *self.training]
        scored = self.evaluations(self.start) + self.evaluations(self.policy)
        return list({stage.key: stage for stage in (*trained, *scored)}.values())
