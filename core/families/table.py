"""Which classes train a family of papers; imported only when something is about to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from eval.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family's config and trainer class (`module:name`), and the data columns it must have."""

    config: str
    trainer: str
    columns: tuple[str, ...]

    def config_class(self) -> type[Any]:
        """Import the config class: a `transformers.TrainingArguments`."""
        return _load(self.config)

    def trainer_class(self) -> type[Any]:
        """Import the trainer class: a `transformers.Trainer`."""
        return _load(self.trainer)


FAMILIES: Mapping[str, Family] = {
    "grpo": Family(
        config="core.configs.grpo:GRPOConfig",
        trainer="core.trainers.grpo:GRPOTrainer",
        columns=("prompt", "answer"),
    ),
}


def find_family(name: str) -> Family:
    """The family of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in FAMILIES:
        raise UnknownName("family", name, FAMILIES)
    return FAMILIES[name]


def _load(path: str) -> type[Any]:  # Any: classes of torch-side libraries
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
