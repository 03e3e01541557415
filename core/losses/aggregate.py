"""From one loss per token to the number that is differentiated; the only place that divides.

Pieces of a micro-batch and micro-batches of an optimizer step are summed, processes are averaged
(by the distributed backend): each aggregate divides such that the sum is the mean it promises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core.losses.masked import masked_mean
from core.shapes import BT, B, Count, Mask, Scalar


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where a micro-batch stands in its optimizer step.

    `rollout_tokens` are the trained tokens of a rollout over all processes, which is cut into
    `micro_batches` on each; `accumulation` of those make one optimizer step. An evaluation batch
    stands alone: both are 1. `rows` and `tokens` are the completions and trained tokens of the
    micro-batch of which these are a piece; unset, they are all of it. Where completions were left
    out of a rollout, `rows` is the mean over its micro-batches. `group_tokens` are those of a
    completion in the mean of its group.
    """

    rollout_tokens: Count
    accumulation: int = 1
    micro_batches: int = 1
    processes: int = 1
    max_length: int = 1
    rows: Count | None = None
    tokens: Count | None = None
    group_tokens: B | None = None


def rows_of(loss: BT, scale: Scale) -> Count | int:
    """The completions that a mean is over, as a number of the loss's precision."""
    return loss.size(0) if scale.rows is None else scale.rows.to(loss.dtype)


def sequence_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Mean over the tokens of each completion, then over completions; arXiv 2402.03300 eq. 3."""
    return masked_mean(loss, mask).sum() / rows_of(loss, scale) / scale.accumulation


def token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Mean over the tokens of the micro-batch, then over micro-batches.

    Depends on how a batch is split: completions in a micro-batch of few tokens weigh more.
    """
    tokens = mask.sum() if scale.tokens is None else scale.tokens
    return (loss * mask).sum() / tokens.clamp(min=1.0) / scale.accumulation


def constant_length(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Sum over tokens divided by the length limit, mean over completions; arXiv 2503.20783."""
    rows = rows_of(loss, scale)
    return (loss * mask).sum() / (rows * scale.max_length) / scale.accumulation


def global_token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Sum over tokens divided by the tokens of the optimizer step; arXiv 2503.14476 eq. 12.

    The step's share of a rollout is counted by its micro-batches, so that every token of a
    rollout weighs the same.
    """
    rollout = scale.rollout_tokens.clamp(min=1.0) / scale.processes
    return (loss * mask).sum() / (rollout * scale.accumulation / scale.micro_batches)


def token_sum(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Sum over the tokens of each completion, mean over completions; arXiv 2602.05261."""
    return (loss * mask).sum() / rows_of(loss, scale) / scale.accumulation


def prompt_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Mean over the tokens of each prompt's group, then over prompts.

    arXiv 2503.14476 eq. 12, arXiv 2506.13585 and arXiv 2510.13786 as they are printed.
    """
    if scale.group_tokens is None:
        raise TypeError("a mean over prompts needs the tokens of their groups")
    each = (loss * mask).sum(-1) / scale.group_tokens
    return each.sum() / rows_of(loss, scale) / scale.accumulation


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A row of `AGGREGATES`.

    `splits` promises that loss and gradient do not depend on how an optimizer step's completions
    are split into micro-batches. One that `counts_tokens` divides by those of the whole step rather
    than by the number of micro-batches, and one that `counts_groups` by those of each prompt; one
    that `counts_mask` divides by tokens of the micro-batch or step, fewer if some are left out.
    """

    mean: Callable[[BT, Mask, Scale], Scalar]
    doc: str
    splits: bool = True
    counts_tokens: bool = False
    counts_groups: bool = False
    counts_mask: bool = False

    @property
    def weighs_tokens(self) -> bool:
        """Return whether a mean over batches weighs them by tokens, not by completions."""
        return self.counts_tokens or not self.splits

    @property
    def parameters(self) -> tuple[str, ...]:
        """The settings that act with it."""
        return ("token_normalizer",) if self.counts_tokens else ()


AGGREGATES = {
    "sequence_mean": Aggregate(
        mean=sequence_mean, doc="the mean over completions of each one's mean", counts_mask=True
    ),
    "token_mean": Aggregate(
        mean=token_mean,
        doc="the mean over the tokens of a micro-batch",
        splits=False,
        counts_mask=True,
    ),
    "constant_length": Aggregate(
        mean=constant_length, doc="the mean over completions of each one's sum by the length limit"
    ),
    "global_token_mean": Aggregate(
        mean=global_token_mean,
        doc="the mean over all tokens",
        counts_tokens=True,
        counts_mask=True,
    ),
    "token_sum": Aggregate(mean=token_sum, doc="the mean over completions of each one's sum"),
    "prompt_mean": Aggregate(
        mean=prompt_mean,
        doc="the mean over prompts of the mean over the tokens of each one's completions",
        counts_groups=True,
    ),
}


def of_step(tokens: Sequence[Count]) -> list[Count]:
    """The mean over the rollouts of an optimizer step, so that all its tokens weigh the same."""
    same = all(count is tokens[0] for count in tokens)
    return list(tokens) if same else [torch.stack(list(tokens)).double().mean()] * len(tokens)


@dataclass(frozen=True)
class TokenNormalizer:
    """A row of `TOKEN_NORMALIZERS`.

    From the tokens of each micro-batch's rollout to what `rollout_tokens` counts; of those an
    optimizer step divides by its share, or by all of them.
    """

    counts: Callable[[Sequence[Count]], list[Count]]
    doc: str
    shares: bool = True


TOKEN_NORMALIZERS = {
    "step": TokenNormalizer(
        of_step, "those of the optimizer step, arXiv 2503.14476 eq. 12, so that all weigh the same"
    ),
    "rollout": TokenNormalizer(list, "those of each rollout in it, as TRL does from 1.10 on"),
    "whole_rollout": TokenNormalizer(
        list,
        "all of each rollout, however large the part of it in the step, as TRL did until 1.9",
        shares=False,
    ),
}
