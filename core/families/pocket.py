"""Trainings of the starting models of the pocket world that are not shipped."""

from collections.abc import Mapping

from core.families.regimes import ONE_RATE
from core.paper.page import PREPARED

Settings = Mapping[str, object]
COMMON: Settings = {
    **ONE_RATE,
    "family": "sft",
    "lr_scheduler_type": "cosine",
    "warmup_steps": 50,
    "weight_decay": 0.01,
    "adam_beta2": 0.98,
    "per_device_train_batch_size": 32,
    "max_length": 1024,
    "train_sampling_strategy": "group_by_length",
    "heldout_problems": 0,
    "logging_steps": 25,
    "save_steps": 200,
}
# As `make pocket` trains the shipped ones: capability first, on right solutions, and then the
# mistakes and the order of the data of one build.
STARTS: Mapping[str, Settings] = {
    "pocket-capable": {
        **COMMON,
        "model": "pocket-base",
        "data": "pocket-demonstrations",
        "learning_rate": 2e-3,
        "max_steps": 2600,
    },
    "pocket-instruct": {
        **COMMON,
        "per_seed": True,
        "model": f"{PREPARED}pocket-capable",
        "data": "pocket-fallible",
        "learning_rate": 8e-4,
        "max_steps": 600,
    },
}
