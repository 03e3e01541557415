"""Importance weights of a rollout: trained over sampling probabilities, and their metrics."""

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor

from core.collect.generation import Generated
from core.collect.metrics import Metrics, gather_valid, summary
from core.forward.batches import Batch, trained_mask
from core.losses.sampling import Correction, sampling_ratio
from eval.errors import BadValue


def sampling_logps(generated: Generated, like: Tensor) -> Tensor:
    """Return the engine's log-probabilities with the shape of `like` (B, T).

    Unknown log-probabilities are NaN, and padding is 0.

    Raises:
        BadValue: the rollout function returned none.
    """
    if generated.logps is None:
        raise BadValue(
            "rollout_func returned logprobs=None: return those of its tokens, or set "
            "vllm_importance_sampling_correction=False, and compare_sampler=False"
        )
    logps = torch.zeros(like.shape, dtype=torch.float64)
    for i, row in enumerate(generated.logps):
        values = [torch.nan if logp is None else logp for logp in row]
        logps[i, : len(row)] = torch.tensor(values, dtype=logps.dtype)
    return logps


def sampling_difference(batches: Sequence[Batch], accelerator: Accelerator) -> Metrics:
    """Return mean and maximum of |log pi_old - log pi_engine| over the tokens of all processes."""
    apart: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch).bool()
        apart.append((old - batch["sampling_logps"].to(old)).abs()[mask])
    differences = gather_valid(torch.cat(apart), accelerator).nan_to_num(0.0)
    metrics = summary("sampling/sampling_logp_difference/{}", differences)
    return {name: value for name, value in metrics.items() if not name.endswith("min")}


def correct_sampling(
    batches: Sequence[Batch], correction: Correction, accelerator: Accelerator
) -> Metrics:
    """Add `importance_sampling_ratio` to the micro-batches of a rollout.

    Return statistics of the ratio over all processes; `masked_fraction` is no metric of TRL.
    """
    ratios: list[Tensor] = []
    for batch in batches:
        old, mask = batch["old_per_token_logps"], trained_mask(batch)
        ratio = sampling_ratio(old, batch["sampling_logps"].to(old), mask, correction)
        batch["importance_sampling_ratio"] = ratio
        ratios.append(ratio.flatten() if ratio.size(1) == 1 else ratio[mask.bool()])
    weights = gather_valid(torch.cat(ratios), accelerator).nan_to_num(0.0)
    return {
        **summary("sampling/importance_sampling_ratio/{}", weights),
        "sampling/masked_fraction": (weights == 0).float().mean().item(),
    }
