"""Rewards of a rollout over all processes as tensors, and statistics of it for the log."""

from collections.abc import Sequence
from typing import cast

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, pad_across_processes
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.utils import logging

from core.collect.completion_log import RewardLogs
from core.collect.generation import Generated
from core.collect.metrics import Metrics, length_metrics, unique_fraction
from core.collect.outcomes import repetition
from core.collect.reward_calls import Value, outcome_reward
from core.collect.step_rewards import step_tensors, token_steps

logger = logging.get_logger(__name__)


def gather_rewards(values: Sequence[Sequence[Value]], accelerator: Accelerator) -> Tensor:
    """Return the rewards (N, F) of all processes, NaN where a function gave no score."""
    outcomes = torch.tensor(
        [[outcome_reward(value) for value in column] for column in values],
        device=accelerator.device,
    ).T
    if outcomes.isnan().all(1).any():
        logger.warning("no reward function scored some completions: their advantage is 0")
    return cast(Tensor, accelerator.gather(outcomes))


def gather_steps(
    values: Sequence[Sequence[Value]],
    completion_ids: Sequence[Sequence[int]],
    weights: Sequence[float],
    tokenizer: PreTrainedTokenizerBase,
    accelerator: Accelerator,
) -> tuple[Tensor, Tensor]:
    """Return weighted step rewards of all processes and their ending tokens, both (N, S)."""
    by_completion = zip(zip(*values, strict=True), completion_ids, strict=True)
    steps = [
        token_steps(weights, step_values, ids, tokenizer) for step_values, ids in by_completion
    ]
    rewards, ends = (tensor.to(accelerator.device) for tensor in step_tensors(steps))
    return (
        cast(Tensor, accelerator.gather(same_width(rewards, torch.nan))),
        cast(Tensor, accelerator.gather(same_width(ends, 0))),
    )


def same_width(rows: Tensor, filler: float) -> Tensor:
    """Pad rows on the right to the greatest width of all processes."""
    return cast(Tensor, pad_across_processes(rows, dim=1, pad_index=cast(int, filler)))


def length_summary(
    generated: Generated, ends: Sequence[int], group: int, accelerator: Accelerator
) -> tuple[Metrics, int]:
    """Return length metrics of all completions, and the number of tokens with those of prompts."""

    def gather(values: Sequence[float]) -> Tensor:
        return cast(Tensor, accelerator.gather(torch.tensor(values, device=accelerator.device)))

    lengths, truncated = gather(generated.lengths), gather(generated.are_truncated(ends))
    prompts = gather([len(ids) for ids in generated.prompt_ids])
    metrics = length_metrics(lengths, truncated)
    repeated = gather([repetition(generated.completion_ids)])
    metrics["completions/repetition"] = repeated.mean().item()
    if len(generated.completion_ids) % group == 0:
        unique = gather([unique_fraction(generated.completion_ids, group)])
        metrics["completions/unique_fraction"] = unique.mean().item()
    return metrics, int(prompts.sum() + lengths.sum())


def named_metrics(logs: RewardLogs, accelerator: Accelerator) -> Metrics:
    """Return the `log_metric` values of rewards: their means, and sums for timeouts."""
    means: Metrics = {}
    for name in sorted(set(gather_object(list(logs.metrics)))):
        numbers = logs.metrics.get(name, [])
        sums = torch.tensor(
            [sum(numbers), len(numbers)], dtype=torch.float64, device=accelerator.device
        )
        total, count = cast(Tensor, accelerator.gather(sums)).view(-1, 2).sum(0).tolist()
        means[name] = total if name.endswith("/timeouts") else total / count
    return means


def logged_columns(logs: RewardLogs, rows: int) -> dict[str, Sequence[object]]:
    """Return the `log_extra` columns, with one value per completion of all processes."""
    return {
        column: gather_object(logs.column(column, rows))
        for column in sorted(set(gather_object(list(logs.columns))))
    }
