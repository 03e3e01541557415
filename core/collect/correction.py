"""Weighs a rollout by how likely its tokens are here, over how likely where they were drawn."""

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor

from core.collect.generation import Generated
from core.collect.metrics import Metrics, everywhere, summary
from core.forward.batches import Batch, trained_mask
from core.losses.sampling import Correction, sampling_ratio
from eval.errors import BadValue


def sampling_logps(generated: Generated, like: Tensor) -> Tensor:
    """The engine's log-probabilities (B, T), shaped `like`; NaN where unknown, 0 on padding.

    Raises:
        BadValue: a rollout function gave none.
    """
    if generated.logps is None:
        raise BadValue(
            "rollout_func returned logprobs=None: return those of its tokens, or set "
            "vllm_importance_sampling_correction=False, and compare_sampler=False"
        )
    found = torch.zeros(like.shape, dtype=torch.float64)
    for i, row in enumerate(generated.logps):
        known = [torch.nan if logp is None else logp for logp in row]
        found[i, : len(row)] = torch.tensor(known, dtype=found.dtype)
    return found


def sampling_difference(batches: Sequence[Batch], accelerator: Accelerator) -> Metrics:
    """How far the engine's log-probabilities are from the policy's, over all processes."""
    apart: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch).bool()
        apart.append((old - batch["sampling_logps"].to(old)).abs()[mask])
    every = everywhere(torch.cat(apart), accelerator).nan_to_num(0.0)
    found = summary("sampling/sampling_logp_difference/{}", every)
    return {name: value for name, value in found.items() if not name.endswith("min")}


def correct_sampling(
    batches: Sequence[Batch], correction: Correction, accelerator: Accelerator
) -> Metrics:
    """Put the ratio into the micro-batches of a rollout, beside the engine's logarithms.

    What is logged of it, over all processes, is returned; `masked_fraction` is not TRL's.
    """
    ratios: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch)
        ratio = sampling_ratio(old, batch["sampling_logps"].to(old), mask, correction)
        batch["importance_sampling_ratio"] = ratio
        ratios.append(ratio.flatten() if ratio.size(1) == 1 else ratio[mask.bool()])
    weights = everywhere(torch.cat(ratios), accelerator).nan_to_num(0.0)
    return {
        **summary("sampling/importance_sampling_ratio/{}", weights),
        "sampling/masked_fraction": (weights == 0).float().mean().item(),
    }
