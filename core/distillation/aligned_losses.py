"""Losses of groups of tokens that a student and a teacher of another tokenizer have in common."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.distillation.aligned_text import Reading
from core.distillation.gold_config import GOLDConfig
from core.forward.batches import Batch, token_batch
from core.forward.logps import evaluating
from core.forward.two_heads import entropy_of, padded_logits
from core.losses.transport import Groups, Matches, matched_and_sorted, merged, sorted_l1


class Side(NamedTuple):
    """One model at its completion tokens, row after row.

    Attributes:
        logps: Log-probabilities (N, V) that predict these tokens, at the temperature of the loss.
        tokens: The tokens (N,).
        groups: The tokens of each group, by their places in all rows together.
    """

    logps: Tensor
    tokens: Tensor
    groups: Groups


def side(model: nn.Module, batch: Batch, groups: Sequence[Groups], temperature: float) -> Side:
    """Return a model at the completion tokens of a batch, with the groups of each row."""
    mask = batch["completion_mask"]
    starts = accumulate(mask.sum(1).tolist(), initial=0)
    joined = [
        [start + place for place in group]
        for start, row in zip(starts, groups, strict=False)
        for group in row
    ]
    logps = (padded_logits(model, batch) / temperature).log_softmax(-1)
    return Side(logps, batch["completion_ids"][mask.bool()], joined)


def teacher_side(
    teacher: PreTrainedModel, readings: Sequence[Reading], temperature: float, pad: int
) -> Side:
    """Return a teacher at its own tokens of completions, without gradient.

    Args:
        teacher: The teacher, whole.
        readings: What it reads of each row.
        temperature: Divides its logits.
        pad: A token of its vocabulary.
    """
    batch = token_batch([r.prompt for r in readings], [r.answer for r in readings], pad, None)
    batch = {name: value.to(teacher.device) for name, value in batch.items()}
    with torch.no_grad(), evaluating(teacher):
        return side(teacher, batch, [reading.other for reading in readings], temperature)


def distances(
    student: Side, teacher: Side, matches: Matches | None, args: GOLDConfig
) -> dict[str, Tensor]:
    """Return the loss of each group and its parts, by their names in logs, each (G,).

    Entries of both vocabularies that match are compared directly; without matches all are sorted.
    """
    own, other = (
        merged(x.logps.exp(), x.tokens, x.groups, args.uld_token_merge_strategy)
        for x in (student, teacher)
    )
    if matches is None:
        return {"loss": sorted_l1(own, other)}
    matched, unmatched = matched_and_sorted(own, other, matches, args.beta)
    share = len(matches.own) / other.size(-1)
    weight, rest = args.uld_hybrid_matched_weight, args.uld_hybrid_unmatched_weight
    direct = (share if weight is None else weight) * matched
    return {
        "loss": direct + (1 - share if rest is None else rest) * unmatched,
        "matched_loss": matched,
        "unmatched_loss": unmatched,
        "uld/matched_mass": own[:, matches.own].sum(-1),
    }


def alignment(student: Side, teacher: Side) -> dict[str, Tensor]:
    """Return values behind metrics of all tokens of both sides, by their names in logs.

    `uld/aligned_share` is the share of the student's tokens in a group, `uld/merged_share` that of
    groups with several tokens of a side.
    """
    grouped = {place for group in student.groups for place in group}
    pairs = zip(student.groups, teacher.groups, strict=True)
    several = [float(max(map(len, pair)) > 1) for pair in pairs]
    return {
        "entropy": entropy_of(student.logps),
        "uld/teacher_entropy": entropy_of(teacher.logps),
        "uld/aligned_share": torch.tensor(
            [float(i in grouped) for i in range(len(student.tokens))]
        ),
        "uld/merged_share": torch.tensor(several),
    }


def at_ends(values: Tensor, student: Side) -> Tensor:
    """Return values (G,) of groups at the last token of each, 0 at other tokens (N,)."""
    places = torch.tensor([group[-1] for group in student.groups], device=values.device)
    return values.new_zeros(len(student.tokens)).index_put((places.long(),), values)


def in_rows(values: Tensor, mask: Tensor) -> Tensor:
    """Return values (N,) of the tokens of a mask in its shape (B, T), 0 elsewhere."""
    return values.new_zeros(mask.shape).masked_scatter(mask.bool(), values)
