"""The training stage, from a model and data to trained weights and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.records.places import MODEL, MODELS
from core.settings.effective import effective
from core.settings.resolved import Resolved
from core.stages.data import Data
from core.stages.sources import source_of
from core.stages.stage import Policy
from core.stages.start import Chosen
from eval.grading import GRADER_VERSION


@dataclass(frozen=True, kw_only=True)
class Train(Policy):
    """The training of one arm with one seed, from the model of another stage.

    Arms that score different weights of one training have one stage.
    """

    name = "train"
    resolved: Resolved
    seed: int
    data: Data
    begin: Policy
    roles: Mapping[str, Chosen] = field(default_factory=dict[str, Chosen])

    @property
    def inputs(self) -> Mapping[str, object]:
        """The effective settings, the seed, the rows, and the models that the training reads."""
        roles = {role: dict(model.inputs) for role, model in self.roles.items()}
        run = self.resolved.run
        watched = {suite: source_of(suite, run.heldout_mode) for suite in run.watched_suites}
        return {
            **effective(self.resolved),
            "seed": self.seed,
            "data": self.data.key,
            "start": self.begin.key,
            "grader": GRADER_VERSION,  # of the accuracy reward and of held-out problems
            **({"roles": roles} if roles else {}),
            **({"watched": watched} if watched else {}),
        }

    @property
    def subject(self) -> str:
        """The name of the arm."""
        return self.resolved.arm

    @property
    def label(self) -> str:
        """The paper, the arm and the seed."""
        return f"{self.resolved.paper.slug}-{self.resolved.arm}-seed{self.seed}"

    @property
    def model(self) -> str:
        """The folder of the trained model."""
        return str(self.folder / MODEL)

    def work(self, folder: Path) -> Mapping[str, object]:
        """Train in this process, or in the processes of a launch; return the outputs."""
        from core.spread.launch import Models, launch
        from core.stages.training import train_model

        train = train_model if self.resolved.run.launch is None else launch
        roles = {role: model.model for role, model in self.roles.items()}
        models = Models(self.begin.model, roles)
        return train(self.resolved, self.seed, models, self.data.folder, folder)


@dataclass(frozen=True, kw_only=True)
class Averaged(Policy):
    """An average of the weights of a training, which the training saved."""

    name = "averaged"
    train: Train
    weights: str

    @property
    def inputs(self) -> Mapping[str, object]:
        """The training, and which of its models this is."""
        return {"train": self.train.key, "weights": self.weights}

    @property
    def subject(self) -> str:
        """The name of the arm."""
        return self.train.subject

    @property
    def label(self) -> str:
        """The paper, the arm and the seed."""
        return self.train.label

    @property
    def model(self) -> str:
        """The folder of the averaged model, in that of the training."""
        return str(self.train.folder / MODELS[self.weights])

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Return the digest of the weights."""
        return {"weights": self.train.run()["averages"][self.weights]}
