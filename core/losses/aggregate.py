"""Functions that reduce one loss per token to the scalar that is differentiated.

The losses of the pieces of a micro-batch and of the micro-batches of an optimizer step are summed,
and those of processes averaged by the distributed backend. Each aggregate divides such that this
sum is the mean that its docstring states.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core.losses.masked import masked_mean
from core.shapes import BT, B, Count, Mask, Scalar


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Denominators of an aggregate: the place of a micro-batch in its optimizer step.

    Attributes:
        rollout_tokens: Trained tokens of the rollout, over all processes.
        accumulation: Micro-batches of an optimizer step; 1 for an evaluation batch.
        micro_batches: Micro-batches of the rollout on each process; 1 for an evaluation batch.
        processes: Number of processes.
        max_length: Greatest number of tokens of a completion.
        rows: Completions of the micro-batch. None means that the loss has all of them. If
            completions were dropped from a rollout, this is the mean over its micro-batches.
        tokens: Trained tokens of the micro-batch; None means that the mask has all of them.
        group_tokens: For each completion, the tokens that the mean over its group divides by.
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
    """Return the number of completions that a mean is over, in the dtype of the loss."""
    return loss.size(0) if scale.rows is None else scale.rows.to(loss.dtype)


def sequence_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the mean over the tokens of each completion, then over completions.

    arXiv 2402.03300 eq. 3.
    """
    return masked_mean(loss, mask).sum() / rows_of(loss, scale) / scale.accumulation


def token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the mean over the tokens of the micro-batch, then over micro-batches.

    The result depends on how a batch is split: a completion weighs more in a micro-batch with fewer
    tokens.
    """
    tokens = mask.sum() if scale.tokens is None else scale.tokens
    return (loss * mask).sum() / tokens.clamp(min=1.0) / scale.accumulation


def constant_length(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the mean over completions of their token sum / length limit; arXiv 2503.20783."""
    rows = rows_of(loss, scale)
    return (loss * mask).sum() / (rows * scale.max_length) / scale.accumulation


def global_token_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the sum over tokens divided by the tokens of the optimizer step.

    arXiv 2503.14476 eq. 12. An optimizer step of `accumulation` out of `micro_batches`
    micro-batches divides by that share of the rollout's tokens, so that every token of a rollout
    has the same weight.
    """
    rollout = scale.rollout_tokens.clamp(min=1.0) / scale.processes
    return (loss * mask).sum() / (rollout * scale.accumulation / scale.micro_batches)


def token_sum(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the sum over the tokens of each completion, averaged over completions.

    arXiv 2602.05261.
    """
    return (loss * mask).sum() / rows_of(loss, scale) / scale.accumulation


def prompt_mean(loss: BT, mask: Mask, scale: Scale) -> Scalar:
    """Return the mean over the tokens of each prompt's group, then over prompts.

    arXiv 2503.14476 eq. 12, arXiv 2506.13585 and arXiv 2510.13786 as printed there.

    Raises:
        TypeError: `scale` has no `group_tokens`.
    """
    if scale.group_tokens is None:
        raise TypeError("prompt_mean needs scale.group_tokens, the tokens of each prompt's group")
    per_completion = (loss * mask).sum(-1) / scale.group_tokens
    return per_completion.sum() / rows_of(loss, scale) / scale.accumulation


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A row of `AGGREGATES`: a reduction of token losses to a scalar, and what it divides by.

    Attributes:
        splits: Whether loss and gradient are independent of how the completions of an optimizer
            step are split into micro-batches.
        counts_tokens: Whether it divides by the tokens of the optimizer step, not by its
            micro-batches.
        counts_groups: Whether it divides by the tokens of each prompt's group.
        counts_mask: Whether its denominator counts tokens of the mask, so that a smaller mask
            changes it.
    """

    mean: Callable[[BT, Mask, Scale], Scalar]
    doc: str
    split_invariant: bool = True
    counts_tokens: bool = False
    counts_groups: bool = False
    counts_mask: bool = False

    @property
    def weighs_tokens(self) -> bool:
        """True if a mean over batches has to weight them by tokens, not by completions."""
        return self.counts_tokens or not self.split_invariant

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the settings that have an effect with this aggregate."""
        return ("token_normalizer",) if self.counts_tokens else ()


AGGREGATES = {
    "sequence_mean": Aggregate(
        mean=sequence_mean, doc="the mean over completions of each one's mean", counts_mask=True
    ),
    "token_mean": Aggregate(
        mean=token_mean,
        doc="the mean over the tokens of a micro-batch",
        split_invariant=False,
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


def average_counts(tokens: Sequence[Count]) -> list[Count]:
    """Replace the token count of each rollout in an optimizer step by their mean.

    With it all tokens of the step have the same weight. Counts that are one and the same tensor are
    returned unchanged.
    """
    is_one_rollout = all(count is tokens[0] for count in tokens)
    return (
        list(tokens)
        if is_one_rollout
        else [torch.stack(list(tokens)).double().mean()] * len(tokens)
    )


@dataclass(frozen=True)
class TokenNormalizer:
    """A row of `TOKEN_NORMALIZERS`: which token count `global_token_mean` divides by.

    Attributes:
        counts: Maps the token counts of the rollouts of a step's micro-batches to
            `Scale.rollout_tokens`.
        shares: Whether an optimizer step divides by its share of the rollout's tokens, not by all
            of them.
    """

    counts: Callable[[Sequence[Count]], list[Count]]
    doc: str
    shares: bool = True


TOKEN_NORMALIZERS = {
    "step": TokenNormalizer(
        average_counts,
        "those of the optimizer step, arXiv 2503.14476 eq. 12, so that all weigh the same",
    ),
    "rollout": TokenNormalizer(list, "those of each rollout in it, as TRL does from 1.10 on"),
    "whole_rollout": TokenNormalizer(
        list,
        "all of each rollout, however large the part of it in the step, as TRL did until 1.9",
        shares=False,
    ),
}
