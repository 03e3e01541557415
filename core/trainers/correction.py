"""Weighs a rollout by how likely its tokens are here, over how likely where they were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core.collect.generation import Generated
from core.collect.metrics import Metrics, present, summary
from core.forward.batches import Batch, trained_mask
from core.losses.sampling import Correction, sampling_ratio
from eval.errors import BadValue

if TYPE_CHECKING:
    from core.trainers.grpo import GRPOTrainer


def sampling_logps(generated: Generated, like: Tensor) -> Tensor:
    """The engine's log-probabilities (B, T), shaped `like`; NaN where unknown, 0 on padding.

    Raises:
        BadValue: a rollout function gave none.
    """
    if generated.logps is None:
        raise BadValue(
            "rollout_func returned logprobs=None: return those of its tokens, or set "
            "vllm_importance_sampling_correction=False"
        )
    found = torch.zeros(like.shape, dtype=torch.float64)
    for i, row in enumerate(generated.logps):
        known = [torch.nan if logp is None else logp for logp in row]
        found[i, : len(row)] = torch.tensor(known, dtype=found.dtype)
    return found


def correct_sampling(trainer: GRPOTrainer, batches: Sequence[Batch]) -> None:
    """Add the ratio to the micro-batches of a rollout, in the place of the engine's logarithms."""
    args = trainer.args
    correction = Correction(
        mode=args.vllm_importance_sampling_mode,
        clip_min=args.vllm_importance_sampling_clip_min,
        clip_max=args.vllm_importance_sampling_clip_max,
    )
    differences: list[Tensor] = []
    ratios: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch)
        logps = batch.pop("sampling_logps").to(old)
        ratio = sampling_ratio(old, logps, mask, correction)
        batch["importance_sampling_ratio"] = ratio
        differences.append((old - logps).abs()[mask.bool()])
        ratios.append(ratio.flatten() if ratio.size(1) == 1 else ratio[mask.bool()])
    trainer.record(sampling_metrics(trainer, torch.cat(differences), torch.cat(ratios)))


def sampling_metrics(trainer: GRPOTrainer, differences: Tensor, ratios: Tensor) -> Metrics:
    """How far log-probabilities are apart on trained tokens, and the ratios, over all processes."""
    apart = summary("sampling/sampling_logp_difference/{}", gathered(trainer, differences))
    weights = summary("sampling/importance_sampling_ratio/{}", gathered(trainer, ratios))
    return {
        name: value for name, value in (apart | weights).items() if "difference/min" not in name
    }


def gathered(trainer: GRPOTrainer, values: Tensor) -> Tensor:
    """The values of all processes that are not NaN, or one 0."""
    everywhere = trainer.accelerator.pad_across_processes(values, pad_index=float("nan"))  # type: ignore[arg-type] - typed int
    kept = present(trainer.gather(everywhere))  # type: ignore[arg-type]
    return kept.nan_to_num(0.0)
