"""A paper whose run takes seconds at its own settings."""

MODULE = """
from dataclasses import replace

from papers.deepseekmath_grpo import PAPER as BASE

PAPER = replace(
    BASE,
    slug="short-run",
    claims=(),
    reported=(),
    benchmarks=("gsm8k",),
    evaluations=(replace(BASE.evaluations[0], benchmarks=("gsm8k",), passage="s1"),),
    arms={"grpo": {}},
    profiles={
        "cpu": {
            "max_steps": 2,
            "num_generations": 8,
            "per_device_train_batch_size": 16,
            "max_completion_length": 48,
            "eval_max_tokens": 48,
            "eval_limit": 6,
            "at_k_samples": 8,
            "heldout_problems": 8,
        }
    },
)
"""
SLUG = "short-run"
