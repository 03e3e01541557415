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
            "vllm_importance_sampling_correction=False"
        )
    found = torch.zeros(like.shape, dtype=torch.float64)
    for i, row in enumerate(generated.logps):
        known = [torch.nan if logp is None else logp for logp in row]
        found[i, : len(row)] = torch.tensor(known, dtype=found.dtype)
    return found


def correct_sampling(
    batches: Sequence[Batch], correction: Correction, accelerator: Accelerator
) -> Metrics:
    """Put the ratio into the micro-batches of a rollout, beside the engine's logarithms.

    What is logged of it, over all processes, is returned.
    """
    differences: list[Tensor] = []
    ratios: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch)
        logps = batch["sampling_logps"].to(old)
        ratio = sampling_ratio(old, logps, mask, correction)
        batch["importance_sampling_ratio"] = ratio
        differences.append((old - logps).abs()[mask.bool()])
        ratios.append(ratio.flatten() if ratio.size(1) == 1 else ratio[mask.bool()])
    apart = everywhere(torch.cat(differences), accelerator).nan_to_num(0.0)
    weights = everywhere(torch.cat(ratios), accelerator).nan_to_num(0.0)
    found = {
        **summary("sampling/sampling_logp_difference/{}", apart),
        **summary("sampling/importance_sampling_ratio/{}", weights),
    }
    return {name: value for name, value in found.items() if "difference/min" not in name}
