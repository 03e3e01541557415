"""Trainings of a profile: the nano worlds, each as it is or with one difficulty added to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.claims.needs import PREPARED
from core.paper import Reward
from core.rewards import Accuracy, Flipped, LengthWithin, Scaled

Settings = Mapping[str, object]
LIMIT = 24  # tokens of an answer where the limit is tight
HARD = "rarely-solved"  # the preparation that chooses prompts that are rarely answered correctly


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training in which algorithms are compared: a regime and the changes of it.

    The changes win over the settings of the algorithm, as they make the difficulty.

    Attributes:
        name: Its name.
        regime: The regime of a nano world.
        changes: The settings that it changes.
        base: The training whose trials choose its learning rate.
        usual: The factor of the learning rate of the regime that is chosen in its trials unless
            another is better by more than chance.
        faster: The factor of the chosen rate with which it is trained.
    """

    name: str
    regime: str
    changes: Settings = field(default_factory=dict[str, object])
    base: str
    usual: float = 1.0
    faster: float = 1.0

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """The rewards: those of the changes, else the accuracy."""
        return self.changes.get("rewards", (Accuracy(),))  # type: ignore[return-value]


ROWS = (
    Training(name="choice", regime="choice", base="choice", usual=3.0),
    Training(name="many", regime="many", base="many"),
    Training(name="length", regime="length", base="length"),
    Training(name="large-steps", regime="many", base="many", faster=3.0),
    Training(name="old-sampler", regime="many", changes={"rollout_lag": 64}, base="many"),
    Training(name="low-bit-sampler", regime="many", changes={"rollout_bits": 3}, base="many"),
    Training(name="tight-limit", regime="length-tight", base="length"),
    Training(
        name="small-groups",
        regime="choice",
        changes={"num_generations": 4, "max_steps": 80},
        base="choice",
    ),
    Training(
        name="hard-prompts",
        regime="choice",
        changes={"data": f"{PREPARED}{HARD}"},
        base="choice",
    ),
    Training(
        name="noisy-rewards",
        regime="choice",
        changes={"rewards": (Flipped(Accuracy(), 0.2),), "selection_reward": None},
        base="choice",
    ),
    Training(
        name="two-rewards",
        regime="length",
        changes={"rewards": (Accuracy(), Scaled(LengthWithin(12), 10.0))},
        base="length",
    ),
)
TRAININGS: Mapping[str, Training] = {training.name: training for training in ROWS}
# Preparations that the trainings name, written like those of a paper.
PREPARATIONS: Mapping[str, Settings] = {
    HARD: {
        "family": "difficulty-filter",
        "per_seed": True,
        "num_generations": 32,
        "rate_above": 0.0,
        "rate_at_most": 0.1,
        "at": {"cpu": {"regime": "choice", "num_prompts": 2000}},
    }
}
