"""Weighs a rollout by how likely its tokens are here, over how likely where they were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core.losses.sampling import Correction, sampling_ratio
from core.trainers.batches import Batch, trained_mask
from core.trainers.generation import Generated
from core.trainers.metrics import Metrics, present, summary
from eval.errors import BadValue

if TYPE_CHECKING:
    from core.trainers.grpo import GRPOTrainer


def sampling_correction(trainer: GRPOTrainer, batch: Batch, generated: Generated) -> Batch:
    """The ratio of a rollout with its `old_per_token_logps`, recorded; nothing without vLLM.

    Raises:
        BadValue: a rollout function gave no log-probabilities.
    """
    args = trainer.args
    if not args.corrects_sampling:
        return {}
    if generated.logps is None:
        raise BadValue(
            "rollout_func returned logprobs=None: return those of its tokens, or set "
            "vllm_importance_sampling_correction=False"
        )
    old, mask = batch["old_per_token_logps"], trained_mask(batch)
    logps = logp_rows(generated.logps, old)
    correction = Correction(
        mode=args.vllm_importance_sampling_mode,
        clip_min=args.vllm_importance_sampling_clip_min,
        clip_max=args.vllm_importance_sampling_clip_max,
    )
    ratio = sampling_ratio(old, logps, mask, correction)
    trainer.record(sampling_metrics(trainer, (old - logps).abs()[mask.bool()], ratio, mask))
    return {"importance_sampling_ratio": ratio}


def logp_rows(rows: Sequence[Sequence[float | None]], like: Tensor) -> Tensor:
    """Rows of log-probabilities (B, T), shaped and typed `like`; NaN for None, 0 on padding."""
    found = torch.zeros_like(like)
    for i, row in enumerate(rows):
        known = [torch.nan if logp is None else logp for logp in row]
        found[i, : len(row)] = torch.tensor(known, dtype=like.dtype)
    return found


def sampling_metrics(
    trainer: GRPOTrainer, difference: Tensor, ratio: Tensor, mask: Tensor
) -> Metrics:
    """How far log-probabilities are apart on trained tokens, and the ratios, over all processes."""
    ratios = ratio.flatten() if ratio.size(1) == 1 else ratio[mask.bool()]
    apart = summary("sampling/sampling_logp_difference/{}", gathered(trainer, difference))
    weights = summary("sampling/importance_sampling_ratio/{}", gathered(trainer, ratios))
    return {
        name: value for name, value in (apart | weights).items() if "difference/min" not in name
    }


def gathered(trainer: GRPOTrainer, values: Tensor) -> Tensor:
    """The values of all processes that are not NaN, or one 0."""
    everywhere = trainer.accelerator.pad_across_processes(values, pad_index=float("nan"))  # type: ignore[arg-type] - typed int
    kept = present(trainer.gather(everywhere))  # type: ignore[arg-type]
    return kept.nan_to_num(0.0)
