"""The three scales as settings: what runs on two cores, on one GPU, and as the paper says.

Keys are fields of the family's config or of `core.run.settings.RunSettings`; nothing else differs
between scales.
"""

from collections.abc import Mapping
from types import MappingProxyType

SCALES = ("cpu", "gpu", "paper")

POCKET_TWINS = {
    "gsm8k": "pocket-gsm8k",
    "math": "pocket-math",
    "mgsm_zh": "pocket-mgsm-zh",
    "cmath": "pocket-cmath",
}

_CPU: Mapping[str, object] = {
    "model": "pocket-instruct",
    "data": "pocket",
    "twins": POCKET_TWINS,
    "threads": 1,
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "eval_max_tokens": 96,
    "at_k_limit": 32,
    "heldout_every": 9,
}
_GPU: Mapping[str, object] = {
    "model": "Qwen/Qwen2.5-0.5B-Instruct",
    "logging_steps": 1,
    "heldout_problems": 200,
    "heldout_every": 20,
}

# Family and scale to settings. Sizes of a step are in the family's own row.
PROFILES: Mapping[tuple[str, str], Mapping[str, object]] = MappingProxyType(
    {
        ("grpo", "cpu"): {
            **_CPU,
            "learning_rate": 1e-4,
            "lr_scheduler_type": "constant",
            "num_generations": 16,
            "per_device_train_batch_size": 128,
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 1,
            "max_steps": 36,
            "max_completion_length": 64,
            "save_steps": 12,
        },
        ("grpo", "gpu"): {
            **_GPU,
            "learning_rate": 1e-6,
            "num_generations": 16,
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 8,
            "steps_per_generation": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        ("grpo", "paper"): {"logging_steps": 1, "save_steps": 50, "heldout_problems": 0},
    }
)


def profile(family: str, scale: str) -> Mapping[str, object]:
    """The settings of a family at a scale, without the paper's own."""
    return PROFILES.get((family, scale), {})
