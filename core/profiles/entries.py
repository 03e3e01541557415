"""Settings and preparations with which each family of methods is trained in profiles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.claims.needs import PREPARED
from core.paper.page import AT, FAMILY, PER_SEED
from core.profiles.trainings import Settings, Training

SCALE = "cpu"
RIGHT = "right-answers"  # begins the names of preparations: answers of a start that are right


def own_samples(training: Training) -> Settings:
    """Return no settings: a regime has all that a family needs which samples its answers."""
    del training
    return {}


def right_samples(training: Training) -> Settings:
    """Return the settings of training on right answers of the start, as many as others sample."""
    return {
        "data": f"{PREPARED}{RIGHT}-{training.base}",
        "learning_rate": 3e-4,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.0,
        "max_steps": 160,
        "per_device_train_batch_size": 64,
        "logging_steps": 16,
        "save_strategy": "no",
    }


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Conditions on which a family is trained: its settings, and the trainings open to it.

    Attributes:
        settings: The settings that it needs on top of a regime.
        trainings: The names of the trainings; None for all.
        preparations: The preparations that the settings name, written like those of a paper.
    """

    settings: Callable[[Training], Settings] = own_samples
    trainings: frozenset[str] | None = None
    preparations: Mapping[str, Settings] = field(default_factory=dict[str, Settings])

    def takes(self, training: Training) -> bool:
        """Return whether the family can be trained in a training."""
        return self.trainings is None or training.name in self.trainings


def right_answers(world: str) -> Settings:
    """Return the preparation of right answers that the start of a world samples."""
    return {
        FAMILY: "rejection-sampling",
        PER_SEED: True,
        "num_generations": 8,
        AT: {SCALE: {"regime": world, "num_prompts": 2000}},
    }


SAMPLED_WORLDS = ("choice", "many", "length")
ENTRIES: Mapping[str, Entry] = {
    "grpo": Entry(),
    "rloo": Entry(),
    "ppo": Entry(),
    "sft": Entry(
        settings=right_samples,
        trainings=frozenset(SAMPLED_WORLDS),
        preparations={f"{RIGHT}-{world}": right_answers(world) for world in SAMPLED_WORLDS},
    ),
}
