"""From one loss per token to the number that is differentiated; the only place that divides.

Pieces of a micro-batch and micro-batches of an optimizer step are summed, processes are averaged
(by the distributed backend): each aggregate divides such that the sum is the mean it promises.
"""

from dataclasses import dataclass

from core.losses.masked import masked_mean
from core.shapes import BT, Count, Mask, Scalar


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where a micro-batch stands in its optimizer step.

    `rollout_tokens` are the trained tokens of a rollout over all processes, which is cut into
    `micro_batches` on each; `accumulation` of those make one optimizer step. An evaluation batch
    stands alone: both are 1. `rows` and `tokens` are the completions and trained tokens of the
    micro-batch of which these are a piece; unset, they are all of it.
    """

    rollout_tokens: Count
    accumulation: int = 1
    micro_batches: int = 1
    processes: int = 1
    max_length: int = 1
    rows: Count | None = None
    tokens: Count | None = None


def sequence_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Mean over the tokens of each completion, then over completions; arXiv 2402.03300 eq. 3."""
    rows = loss.size(0) if scale.rows is None else scale.rows
    return masked_mean(loss, mask).sum() / rows / scale.accumulation


def token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Mean over the tokens of the micro-batch, then over micro-batches.

    Depends on how a batch is split: completions in a micro-batch of few tokens weigh more.
    """
    tokens = mask.sum() if scale.tokens is None else scale.tokens
    return (loss * mask).sum() / tokens.clamp(min=1.0) / scale.accumulation


def constant_length(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Sum over tokens divided by the length limit, mean over completions; arXiv 2503.20783."""
    rows = loss.size(0) if scale.rows is None else scale.rows
    return (loss * mask).sum() / (rows * scale.max_length) / scale.accumulation


def global_token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Sum over tokens divided by the tokens of the optimizer step; arXiv 2503.14476 eq. 12.

    The step's share of a rollout is counted by its micro-batches, so that every token of a
    rollout weighs the same.
    """
    rollout = scale.rollout_tokens.clamp(min=1.0) / scale.processes
    return (loss * mask).sum() / (rollout * scale.accumulation / scale.micro_batches)
