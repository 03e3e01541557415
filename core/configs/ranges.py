"""Ranges of numeric settings, and those of the settings that every config has."""

from collections.abc import Callable
from math import isfinite, isnan
from typing import NamedTuple


class Range(NamedTuple):
    """Values that a setting may have.

    Attributes:
        contains: Returns whether a number is one of them; False for NaN.
        expected: The values in words, for the message.
    """

    contains: Callable[[float], bool]
    expected: str


def at_least(bound: float) -> Range:
    """Return the range of all numbers from a bound on."""
    return Range(lambda x: x >= bound, f"at least {bound:g}")


def between(least: float, most: float) -> Range:
    """Return the range from `least` to `most`, both included."""
    return Range(lambda x: least <= x <= most, f"at least {least:g} and at most {most:g}")


NUMBER = Range(lambda x: not isnan(x), "a number")
FRACTION = Range(lambda x: 0 <= x < 1, "at least 0, and below 1")
FINITE = Range(lambda x: x >= 0 and isfinite(x), "at least 0, and finite")
PORT = between(1, 65535)
# Fields that only some configs have are among them; texts such as 'auto' are left to the config.
SHARED_RANGES: dict[str, Range] = {
    "adam_beta1": FRACTION,
    "adam_beta2": FRACTION,
    "adam_epsilon": Range(lambda x: x > 0 and isfinite(x), "above 0, and finite"),
    "data_seed": at_least(0),
    "dataloader_num_workers": at_least(0),
    "dataset_num_proc": at_least(1),
    "ddp_bucket_cap_mb": at_least(1),
    "ddp_timeout": at_least(1),
    "eval_accumulation_steps": at_least(1),
    "eval_delay": at_least(0),
    "eval_steps": FINITE,  # 0 is as many as `logging_steps`
    "gradient_accumulation_steps": at_least(1),
    "label_smoothing_factor": between(0, 1),
    "learning_rate": FINITE,
    "logging_steps": FINITE,
    "max_grad_norm": Range(lambda x: x >= 0, "at least 0; 0 leaves gradients unclipped"),
    "max_steps": at_least(-1),  # as many as the epochs have
    "neftune_noise_alpha": FINITE,
    "num_completions_to_print": at_least(0),
    "num_train_epochs": FINITE,
    "pad_to_multiple_of": at_least(1),
    "per_device_eval_batch_size": at_least(1),
    "per_device_train_batch_size": at_least(1),
    "ref_model_mixup_alpha": between(0, 1),
    "save_steps": FINITE,  # 0 saves at the end alone
    "save_total_limit": at_least(0),
    "seed": at_least(0),
    "vllm_gpu_memory_utilization": Range(lambda x: 0 < x <= 1, "above 0 and at most 1"),
    "vllm_group_port": PORT,
    "vllm_server_port": PORT,
    "warmup_steps": FINITE,
    "weight_decay": FINITE,
}
