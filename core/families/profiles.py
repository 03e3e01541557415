"""Settings of the three scales that families share: two CPU cores, one GPU, and the paper's own.

Keys are fields of a family's config or of `core.settings.run_settings.RunSettings`; nothing else
differs between scales. Batch sizes are in the module of each family.
"""

from collections.abc import Mapping

SCALES = ("cpu", "gpu", "paper")

POCKET_TWINS = {
    "gsm8k": "pocket-gsm8k",
    "math": "pocket-math",
    "mgsm_zh": "pocket-mgsm-zh",
    "cmath": "pocket-cmath",
}

CPU: Mapping[str, object] = {
    "model": "pocket-instruct",
    "twins": POCKET_TWINS,
    "threads": 1,
    "use_cpu": True,
    "bf16": False,
    "eval_max_tokens": 96,
    "at_k_limit": 32,
}
CPU_TRAINING: Mapping[str, object] = {
    **CPU,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "heldout_every": 4,
    "heldout_problems": 300,
    "rate_factors": (1 / 3, 1.0, 3.0),
}
GPU: Mapping[str, object] = {"model": "Qwen/Qwen2.5-0.5B-Instruct"}
GPU_TRAINING: Mapping[str, object] = {
    **GPU,
    "logging_steps": 1,
    "heldout_problems": 200,
    "heldout_every": 20,
}
PAPER_TRAINING: Mapping[str, object] = {
    "logging_steps": 1,
    "save_steps": 50,
    "heldout_problems": 0,
}
