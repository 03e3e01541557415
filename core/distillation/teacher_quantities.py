"""Quantities of a student's own samples by its and its teacher's probabilities of each token."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.forward.batches import token_batch
from core.forward.quantities import BATCH, Quantity, ratio_of_sums
from core.forward.two_heads import token_numbers
from core.losses.divergence import kl
from eval.errors import BadValue

OWN, START, START_SAMPLES = "held_out", "start", "start_samples"  # sets of a file
Columns = Mapping[str, Sequence[float]]  # of N answers


class Samples(NamedTuple):
    """Sampled answers to prompts, as token ids.

    Attributes:
        prompts: The prompt of each.
        answers: The tokens of each.
        is_gone: For each token of each answer, whether the answer before it has gone wrong.
        problems: The number of the problem of each; those of one problem follow each other.
    """

    prompts: Sequence[Sequence[int]]
    answers: Sequence[Sequence[int]]
    is_gone: Sequence[Sequence[bool]]
    problems: Sequence[int]


def both_divergences(logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:  # noqa: ARG001 - a measure
    """Return KL(student || teacher) and KL(teacher || student) of each token (N, 2), in nats."""
    return torch.stack([kl(logps, teacher_logps), kl(teacher_logps, logps)], dim=-1)


@torch.no_grad()
def answer_columns(
    student: PreTrainedModel, teacher: PreTrainedModel, samples: Samples, pad: int
) -> dict[str, list[float]]:
    """Return numbers of tokens and sums of divergences of each answer, at temperature 1.

    `reverse_kl` is KL(student || teacher), `forward_kl` the other one. The first half of an answer
    has its middle token.
    """
    rows: list[dict[str, float]] = []
    pairs = list(zip(samples.prompts, samples.answers, strict=True))
    for start in range(0, len(pairs), BATCH):
        prompts, answers = zip(*pairs[start : start + BATCH], strict=True)
        batch = token_batch(prompts, answers, pad, None)
        batch = {name: value.to(student.device) for name, value in batch.items()}
        numbers = token_numbers(student.eval(), teacher, batch, batch, 1.0, both_divergences)
        gone = samples.is_gone[start : start + BATCH]
        for answer, flags, found in zip(answers, gone, numbers.double().cpu(), strict=True):
            rows.append(sums_of(found[: len(answer)], torch.tensor(flags, dtype=torch.float64)))
    sums = {name: [row[name] for row in rows] for name in rows[0]}
    return {"problem": list(samples.problems), **sums}


def sums_of(numbers: Tensor, is_gone: Tensor) -> dict[str, float]:
    """Return the row of an answer in a file from `both_divergences` of its tokens (T, 2)."""
    reverse, forward = numbers.unbind(-1)
    middle = (len(reverse) + 1) // 2
    return {
        "tokens": len(reverse),
        "first_tokens": middle,
        "gone_tokens": int(is_gone.sum()),
        "reverse_kl": in_single(reverse),
        "reverse_kl_first": in_single(reverse[:middle]),
        "reverse_kl_gone": in_single(reverse * is_gone),
        "forward_kl": in_single(forward),
    }


def in_single(values: Tensor) -> float:
    """Return the sum of numbers in single precision, as a file keeps it."""
    return float(values.sum().float())


class Kind(NamedTuple):
    """A row of `TEACHER_QUANTITIES`: a sum over answers divided by another one, by their columns.

    Attributes:
        above: Column that is summed.
        below: Column that the sum is divided by.
        less: Columns that are subtracted from both.
        of_start: Whether the answers are those of the start.
    """

    above: str
    below: str
    less: tuple[str, str] | None = None
    of_start: bool = False


FIRST, BEHIND_WRONG = ("reverse_kl_first", "first_tokens"), ("reverse_kl_gone", "gone_tokens")
TEACHER_QUANTITIES: Mapping[str, Kind] = {
    "kl_to_teacher": Kind("reverse_kl", "tokens"),
    "kl_to_teacher/first_half": Kind(*FIRST),
    "kl_to_teacher/second_half": Kind("reverse_kl", "tokens", less=FIRST),
    "kl_to_teacher/gone": Kind(*BEHIND_WRONG, of_start=True),
    "kl_to_teacher/right": Kind("reverse_kl", "tokens", less=BEHIND_WRONG, of_start=True),
    "forward_kl_to_teacher": Kind("forward_kl", "tokens"),
    "share_gone": Kind("gone_tokens", "tokens"),
}


def teacher_quantity(name: str, sets: Mapping[str, Columns], *, at_start: bool) -> Quantity:
    """Return a quantity of stored answers, with its interval over the sampling of problems.

    `kl_to_teacher` is KL(student || teacher) in nats a token, of the model's own samples, or of
    its start's samples behind prefixes that are right or have gone wrong. `share_gone` is the share
    of tokens of its own samples behind such a prefix.

    Args:
        name: One of `TEACHER_QUANTITIES`.
        sets: The columns of a file by the name of their set.
        at_start: Whether the model is the start itself.

    Raises:
        BadValue: no token of the samples is one that the quantity is of.
    """
    kind = TEACHER_QUANTITIES[name]
    columns = sets[START if at_start else START_SAMPLES if kind.of_start else OWN]
    pair = (kind.above, kind.below)
    above, below = (torch.tensor(columns[column], dtype=torch.float64) for column in pair)
    if kind.less is not None:
        part, count = (torch.tensor(columns[column], dtype=torch.float64) for column in kind.less)
        above, below = above - part, below - count
    if not below.any():
        raise BadValue(
            f"{name}: none of {len(below)} samples has such a token: ask for another quantity, or "
            "for a benchmark whose answers are judged step by step"
        )
    counts = torch.tensor(columns["problem"]).unique_consecutive(return_counts=True)[1].tolist()
    return ratio_of_sums(above.split(counts), below.split(counts))
