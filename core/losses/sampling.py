"""Importance weights that correct for an engine with a policy slightly unlike the trained one."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from core.losses.masked import masked_mean
from core.shapes import BT, BT1, Mask


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Settings of the importance weight of the trained over the sampling policy.

    Attributes:
        mode: A key of `MODES`.
        clip_min: Lower limit of the weight; None for none.
        clip_max: Upper limit of the weight; None for none.
    """

    mode: str = "sequence_mask"
    clip_min: float | None = None
    clip_max: float | None = 3.0


def by_token(difference: BT, mask: Mask) -> BT:  # noqa: ARG001 - a table row
    """Return the log-ratio of each token (B, T), unchanged."""
    return difference


def by_sequence(difference: BT, mask: Mask) -> BT1:  # noqa: ARG001 - as above
    """Return the log-ratio of each completion (B, 1): the sum over its tokens."""
    return difference.sum(-1, keepdim=True)


def by_mean(difference: BT, mask: Mask) -> BT1:
    """Return the mean token log-ratio of each completion (B, 1)."""
    return masked_mean(difference, mask).unsqueeze(-1)


def truncate_ratio(ratio: BT1, c: Correction) -> BT1:
    """Return min(max(w, C_min), C_max): truncated importance sampling."""
    if c.clip_min is None and c.clip_max is None:
        return ratio
    return ratio.clamp(c.clip_min, c.clip_max)


def mask_ratio(ratio: BT1, c: Correction) -> BT1:
    """Return w within [C_min, C_max], else 0: masked importance sampling."""
    low = -torch.inf if c.clip_min is None else c.clip_min
    high = torch.inf if c.clip_max is None else c.clip_max
    return torch.where((ratio >= low) & (ratio <= high), ratio, 0.0)


def accept_ratio(ratio: BT1, c: Correction) -> BT1:
    """Return 1 where w is within [C_min, C_max], else 0: rejection without weights."""
    return mask_ratio(ratio, c).ne(0).to(ratio.dtype)


@dataclass(frozen=True)
class Mode:
    """A row of `MODES`: the level of the ratio, and how the limits are applied to it.

    `needs_limits` is True if the mode has no effect without limits.
    """

    level: Callable[[BT, Mask], BT1]
    bound: Callable[[BT1, Correction], BT1]
    doc: str
    needs_limits: bool = False

    @property
    def by_token(self) -> bool:
        """True if each token has a ratio of its own."""
        return self.level is by_token


MODES = {
    "token_truncate": Mode(
        by_token, truncate_ratio, "of each token, clamped to the limits", needs_limits=True
    ),
    "token_mask": Mode(by_token, mask_ratio, "of each token, 0 outside the limits"),
    "sequence_truncate": Mode(
        by_sequence, truncate_ratio, "of each completion, clamped to the limits", needs_limits=True
    ),
    "sequence_mask": Mode(by_sequence, mask_ratio, "of each completion, 0 outside the limits"),
    "geometric_mask": Mode(
        by_mean,
        accept_ratio,
        "1 if the geometric mean over a completion's tokens is within the limits, else 0",
        needs_limits=True,
    ),
}


def sampling_ratio(old_logps: BT, sampling_logps: BT, mask: Mask, c: Correction) -> BT1:
    """Return w = pi_old / pi_engine of tokens (B, T) or completions (B, 1), with limits applied.

    The loss is multiplied by it, without gradient. A token whose `sampling_logps` is NaN counts as
    equally likely under both policies. This is TRL 1.16's `importance_sampling_ratio`, which has no
    'geometric_mask'.
    """
    difference = ((old_logps - sampling_logps) * mask).nan_to_num(nan=0.0)
    mode = MODES[c.mode]
    return mode.bound(mode.level(difference, mask).exp(), c)
