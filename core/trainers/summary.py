"""Collects a rollout over all processes: its rewards, its numbers for the log, its samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from accelerate.utils import gather_object, pad_across_processes
from torch import Tensor
from transformers.utils import logging

from core.collect.estimators import Rewards, standardised
from core.collect.generation import Generated, pad_token_id
from core.collect.metrics import length_metrics, reward_metrics, unique_fraction
from core.collect.reward_calls import Value, outcome
from core.collect.step_rewards import step_tensors, token_steps
from core.forward.batches import Batch, trained_mask
from core.losses.batch import Rollout

if TYPE_CHECKING:
    from core.trainers.grpo import GRPOTrainer
    from core.trainers.rollouts import Rows

logger = logging.get_logger(__name__)


def scored_rollout(logps: Tensor, inputs: Batch, *, with_reference: bool) -> Rollout:
    """A micro-batch as the losses take it; without `old_per_token_logps` the ratio is 1."""
    old, advantages = inputs.get("old_per_token_logps"), inputs["advantages"]
    return Rollout(
        logps=logps,
        old_logps=logps.detach() if old is None else old,
        advantages=advantages.unsqueeze(1) if advantages.dim() == 1 else advantages,
        mask=trained_mask(inputs),
        ref_logps=inputs["ref_per_token_logps"] if with_reference else None,
        sampling_ratio=inputs.get("importance_sampling_ratio"),
    )


def gathered_rewards(
    trainer: GRPOTrainer, values: list[list[Value]], generated: Generated
) -> Rewards:
    """The rewards of all processes as tensors, with the steps if the estimator reads them."""
    device, gather = trainer.args.device, trainer.gather
    outcomes = torch.tensor([[outcome(v) for v in column] for column in values], device=device).T
    if outcomes.isnan().all(1).any():
        logger.warning("no reward function scored some completions: their advantage is 0")
    if trainer.args.advantage_estimator != "process":
        return Rewards(values=gather(outcomes))
    by_completion = zip(zip(*values, strict=True), generated.completion_ids, strict=True)
    weights = trainer.reward_weights.tolist()
    steps = [token_steps(weights, given, ids, trainer.tokenizer) for given, ids in by_completion]
    rewards, ends = (tensor.to(device) for tensor in step_tensors(steps))
    return Rewards(
        values=gather(outcomes),
        steps=gather(same_width(rewards, torch.nan)),
        ends=gather(same_width(ends, 0)),
    )


def same_width(rows: Tensor, filler: Any) -> Tensor:  # Any: accelerate types fillers as int
    """Pad rows on the right to the widest of all processes."""
    return cast(Tensor, pad_across_processes(rows, dim=1, pad_index=filler))


def record_rollout(
    trainer: GRPOTrainer, rows: Rows, generated: Generated, rewards: Rewards, advantages: Tensor
) -> None:
    """Record lengths, rewards and token counts, and keep the samples for the completion log."""
    record_lengths(trainer, generated)
    spread = standardised(rewards, trainer.grouping)
    names = [f.name for f in trainer.rewards]
    trainer.record(reward_metrics(names, rewards.values, trainer.grouping.weights, spread))
    record_named(trainer)
    logged = trainer.reward_logs
    extra: dict[str, Sequence[Any]] = {
        column: gather_object(logged.column(column, len(rows)))
        for column in sorted(set(gather_object(list(logged.columns))))
    }
    if trainer.args.log_completions:
        trainer.completion_log.add(
            gather_object([row["prompt"] for row in rows]),
            gather_object(generated.completions),
            {name: rewards.values[:, i].tolist() for i, name in enumerate(names)},
            extra,
            advantages.tolist(),
        )


def record_named(trainer: GRPOTrainer) -> None:
    """Record what rewards gave to `log_metric`: a mean per name and rollout, over all processes."""
    metrics = trainer.reward_logs.metrics
    for name in sorted(set(gather_object(list(metrics)))):
        given = metrics.get(name, [])
        sums = torch.tensor(
            [sum(given), len(given)], dtype=torch.float64, device=trainer.args.device
        )
        total, count = trainer.gather(sums).view(-1, 2).sum(0).tolist()
        trainer.record({name: total / count})


def record_lengths(trainer: GRPOTrainer, generated: Generated) -> None:
    """Record the lengths of all completions and count the tokens seen in training."""
    device, gather = trainer.args.device, trainer.gather
    ends = [*trainer.eos_token_ids, pad_token_id(trainer.tokenizer)]
    lengths = gather(torch.tensor(generated.lengths, device=device))
    truncated = gather(torch.tensor(generated.truncated(ends), device=device))
    prompts = gather(torch.tensor([len(ids) for ids in generated.prompt_ids], device=device))
    trainer.record(length_metrics(lengths, truncated))
    group = trainer.group
    if len(generated.completion_ids) % group == 0:
        unique = torch.tensor([unique_fraction(generated.completion_ids, group)], device=device)
        trainer.record({"completions/unique_fraction": gather(unique).mean().item()})
    if trainer.mode == "train":
        trainer.state.num_input_tokens_seen += int(prompts.sum() + lengths.sum())
    trainer._metrics[trainer.mode]["num_tokens"] = [trainer.state.num_input_tokens_seen]
