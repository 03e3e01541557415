"""What a rollout was like, over all processes: rewards as tensors, and numbers for the log."""

from collections.abc import Sequence
from typing import Any, cast

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
from core.collect.reward_calls import Value, outcome
from core.collect.step_rewards import step_tensors, token_steps

logger = logging.get_logger(__name__)


def gathered_rewards(values: Sequence[Sequence[Value]], accelerator: Accelerator) -> Tensor:
    """The rewards (N, F) of all processes, NaN where a function did not score a completion."""
    outcomes = torch.tensor(
        [[outcome(value) for value in column] for column in values], device=accelerator.device
    ).T
    if outcomes.isnan().all(1).any():
        logger.warning("no reward function scored some completions: their advantage is 0")
    return cast(Tensor, accelerator.gather(outcomes))


def gathered_steps(
    values: Sequence[Sequence[Value]],
    completion_ids: Sequence[Sequence[int]],
    weights: Sequence[float],
    tokenizer: PreTrainedTokenizerBase,
    accelerator: Accelerator,
) -> tuple[Tensor, Tensor]:
    """Weighted step rewards of all processes and the tokens that end the steps, both (N, S)."""
    by_completion = zip(zip(*values, strict=True), completion_ids, strict=True)
    steps = [token_steps(weights, given, ids, tokenizer) for given, ids in by_completion]
    rewards, ends = (tensor.to(accelerator.device) for tensor in step_tensors(steps))
    return (
        cast(Tensor, accelerator.gather(same_width(rewards, torch.nan))),
        cast(Tensor, accelerator.gather(same_width(ends, 0))),
    )


def same_width(rows: Tensor, filler: Any) -> Tensor:  # Any: accelerate types fillers as int
    """Pad rows on the right to the widest of all processes."""
    return cast(Tensor, pad_across_processes(rows, dim=1, pad_index=filler))


def length_summary(
    generated: Generated, ends: Sequence[int], group: int, accelerator: Accelerator
) -> tuple[Metrics, int]:
    """The lengths of all completions for the log, and how many tokens prompts and they have."""

    def gathered(values: Sequence[float]) -> Tensor:
        return cast(Tensor, accelerator.gather(torch.tensor(values, device=accelerator.device)))

    lengths, truncated = gathered(generated.lengths), gathered(generated.truncated(ends))
    prompts = gathered([len(ids) for ids in generated.prompt_ids])
    metrics = length_metrics(lengths, truncated)
    repeated = gathered([repetition(generated.completion_ids)])
    metrics["completions/repetition"] = repeated.mean().item()
    if len(generated.completion_ids) % group == 0:
        unique = gathered([unique_fraction(generated.completion_ids, group)])
        metrics["completions/unique_fraction"] = unique.mean().item()
    return metrics, int(prompts.sum() + lengths.sum())


def named_metrics(logs: RewardLogs, accelerator: Accelerator) -> Metrics:
    """Return the `log_metric` values of rewards: means over a rollout, and sums of timeouts."""
    means: Metrics = {}
    for name in sorted(set(gather_object(list(logs.metrics)))):
        given = logs.metrics.get(name, [])
        sums = torch.tensor(
            [sum(given), len(given)], dtype=torch.float64, device=accelerator.device
        )
        total, count = cast(Tensor, accelerator.gather(sums)).view(-1, 2).sum(0).tolist()
        means[name] = total if name.endswith("/timeouts") else total / count
    return means


def logged_columns(logs: RewardLogs, rows: int) -> dict[str, Sequence[Any]]:  # Any: of any reward
    """What rewards gave to `log_extra`: one value for each completion of all processes."""
    return {
        column: gather_object(logs.column(column, rows))
        for column in sorted(set(gather_object(list(logs.columns))))
    }
