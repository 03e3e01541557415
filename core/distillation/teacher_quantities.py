"""Quantities of a student's and its teacher's samples by the probabilities of each token."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.errors import NotMeasured
from core.forward.batches import token_batch
from core.forward.quantities import BATCH, Quantity, ratio_of_sums
from core.forward.two_heads import entropy_of, token_numbers
from core.losses.divergence import kl

OWN, START, START_SAMPLES = "held_out", "start", "start_samples"  # sets of a file
TEACHER_SAMPLES = "teacher_samples"  # a set of the file of tokens alone
UNLIKELY = 1e-3  # a probability
# The columns of a file of tokens. Answers to a problem, and tokens of an answer, count from 0.
PLACE_COLUMNS = ("problem", "answer", "position", "token", "is_gone")
NUMBER_COLUMNS = (
    *("logp", "teacher_logp", "reverse_kl", "forward_kl"),
    *("entropy", "teacher_entropy", "unlikely_mass"),
)
Columns = Mapping[str, Sequence[float]]  # of N answers or tokens


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


def numbers_of_both(logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:
    """Return the `NUMBER_COLUMNS` (N, 7) of tokens from both models' log-probabilities (N, V)."""
    own, other = (x.gather(-1, tokens[:, None])[:, 0] for x in (logps, teacher_logps))
    divergences = kl(logps, teacher_logps), kl(teacher_logps, logps)
    entropies = entropy_of(logps), entropy_of(teacher_logps)
    mass = logps.exp().masked_fill(teacher_logps >= log(UNLIKELY), 0.0).sum(-1)
    return torch.stack([own, other, *divergences, *entropies, mass], dim=-1)


@torch.no_grad()
def token_columns(
    student: PreTrainedModel, teacher: PreTrainedModel, samples: Samples, pad: int
) -> dict[str, list[float]]:
    """Return the columns of a file of tokens for each token of answers, at temperature 1.

    `reverse_kl` is KL(student || teacher), `forward_kl` the other one. `unlikely_mass` is the
    student's probability of all tokens that the teacher gives less than `UNLIKELY`.
    """
    numbers: list[Tensor] = []
    pairs = list(zip(samples.prompts, samples.answers, strict=True))
    for start in range(0, len(pairs), BATCH):
        prompts, answers = zip(*pairs[start : start + BATCH], strict=True)
        batch = token_batch(prompts, answers, pad, None)
        batch = {name: value.to(student.device) for name, value in batch.items()}
        found = token_numbers(student, teacher, batch, batch, 1.0, numbers_of_both)
        numbers.append(found[batch["completion_mask"].bool()].float().cpu())
    first: dict[int, int] = {}  # the first answer to each problem
    rows = [
        (problem, number - first.setdefault(problem, number), position, *token)
        for number, problem in enumerate(samples.problems)
        for position, token in enumerate(
            zip(samples.answers[number], samples.is_gone[number], strict=True)
        )
    ]
    columns = [*map(list, zip(*rows, strict=True)), *torch.cat(numbers).T.tolist()]
    return dict(zip((*PLACE_COLUMNS, *NUMBER_COLUMNS), columns, strict=True))


def answer_columns(tokens: Columns) -> dict[str, list[float]]:
    """Return the columns of a file of sums for each answer, from those of its tokens.

    The first half of an answer has its middle token.
    """
    begins = [row for row, position in enumerate(tokens["position"]) if position == 0]
    counts = [end - begin for begin, end in pairwise([*begins, len(tokens["position"])])]
    both = torch.tensor([tokens["reverse_kl"], tokens["forward_kl"]], dtype=torch.float64)
    gone = torch.tensor(tokens["is_gone"], dtype=torch.float64)
    parts = zip(both.T.contiguous().split(counts), gone.split(counts), strict=True)
    rows = [sums_of(*part) for part in parts]
    sums = {name: [row[name] for row in rows] for name in rows[0]}
    return {"problem": [tokens["problem"][row] for row in begins], **sums}


def sums_of(numbers: Tensor, is_gone: Tensor) -> dict[str, float]:
    """Return the row of an answer in a file from the divergences of its tokens (T, 2)."""
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
        NotMeasured: no token of the samples is one that the quantity is of.
    """
    kind = TEACHER_QUANTITIES[name]
    columns = sets[START if at_start else START_SAMPLES if kind.of_start else OWN]
    pair = (kind.above, kind.below)
    above, below = (torch.tensor(columns[column], dtype=torch.float64) for column in pair)
    if kind.less is not None:
        part, count = (torch.tensor(columns[column], dtype=torch.float64) for column in kind.less)
        above, below = above - part, below - count
    if not below.any():
        raise NotMeasured(
            f"{name}: none of {len(below)} samples has such a token: ask for another quantity, or "
            "for a benchmark whose answers are judged step by step"
        )
    counts = torch.tensor(columns["problem"]).unique_consecutive(return_counts=True)[1].tolist()
    return ratio_of_sums(above.split(counts), below.split(counts))
