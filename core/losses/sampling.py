"""Corrects for an engine that sampled from a policy slightly other than the one that is trained."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from core.losses.masked import masked_mean
from core.shapes import BT, BT1, Mask


@dataclass(frozen=True, kw_only=True)
class Correction:
    """How the ratio of both policies weighs the loss; None leaves a side open."""

    mode: str = "sequence_mask"
    clip_min: float | None = None
    clip_max: float | None = 3.0


def by_token(difference: BT, mask: Mask) -> BT:  # noqa: ARG001 - a table row
    """One logarithm per token."""
    return difference


def by_sequence(difference: BT, mask: Mask) -> BT1:  # noqa: ARG001 - as above
    """One logarithm per completion, the sum over its tokens."""
    return difference.sum(-1, keepdim=True)


def by_mean(difference: BT, mask: Mask) -> BT1:
    """One logarithm per completion, the mean over its tokens: however long it is."""
    return masked_mean(difference, mask).unsqueeze(-1)


def truncated(ratio: BT1, c: Correction) -> BT1:
    """min(max(w, C_min), C_max); truncated importance sampling."""
    if c.clip_min is None and c.clip_max is None:
        return ratio
    return ratio.clamp(c.clip_min, c.clip_max)


def masked(ratio: BT1, c: Correction) -> BT1:
    """W within [C_min, C_max], 0 outside; masked importance sampling."""
    low = -torch.inf if c.clip_min is None else c.clip_min
    high = torch.inf if c.clip_max is None else c.clip_max
    return torch.where((ratio >= low) & (ratio <= high), ratio, 0.0)


def kept(ratio: BT1, c: Correction) -> BT1:
    """1 within [C_min, C_max], 0 outside: rejection, which weighs nothing that it keeps."""
    return masked(ratio, c).ne(0).to(ratio.dtype)


@dataclass(frozen=True)
class Mode:
    """A row of `MODES`: over what a ratio is taken, and what is done with large and small ones.

    One that `needs_limits` would change nothing without.
    """

    level: Callable[[BT, Mask], BT1]
    bound: Callable[[BT1, Correction], BT1]
    doc: str
    needs_limits: bool = False

    @property
    def by_token(self) -> bool:
        """Whether each token has a ratio of its own."""
        return self.level is by_token


MODES = {
    "token_truncate": Mode(
        by_token, truncated, "of each token, brought within the limits", needs_limits=True
    ),
    "token_mask": Mode(by_token, masked, "of each token, 0 outside of them"),
    "sequence_truncate": Mode(
        by_sequence, truncated, "of each completion, brought within them", needs_limits=True
    ),
    "sequence_mask": Mode(by_sequence, masked, "of each completion, 0 outside of them"),
    "geometric_mask": Mode(
        by_mean,
        kept,
        "1 or 0 as the geometric mean of a completion's is within them or not",
        needs_limits=True,
    ),
}


def sampling_ratio(old_logps: BT, sampling_logps: BT, mask: Mask, c: Correction) -> BT1:
    """W = pi_old / pi_engine within bounds, of tokens or of whole completions.

    A token whose `sampling_logps` is NaN (the engine did not say) counts as equal. What the loss
    of a token is multiplied with, without gradient; TRL 1.16's `importance_sampling_ratio`, which
    has no 'geometric_mask'.
    """
    difference = ((old_logps - sampling_logps) * mask).nan_to_num(nan=0.0)
    mode = MODES[c.mode]
    return mode.bound(mode.level(difference, mask).exp(), c)
