"""Differences between a sampler's and the trainer's log-probabilities of sampled tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.forward.batches import token_batch
from core.forward.logps import token_logps
from core.forward.quantities import BATCH, Quantity, Z, ratio_of_sums, token_mean
from core.rollout.wide_head import widen_head
from core.shards.past_weights import PastWeights

RARE = 0.1  # share of tokens that count as unlikely


class AnswerLogps(NamedTuple):
    """Log-probabilities (T,) of an answer's tokens at temperature 1, in sampling and training."""

    sampled: Tensor
    trained: Tensor


def difference(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return the mean of |log q - log p| over all tokens, in nats."""
    return token_mean([gap(answer) for answer in answers])


def gap(answer: AnswerLogps) -> Tensor:
    """Return |log q - log p| of each token of an answer (T,)."""
    return (answer.sampled - answer.trained).abs()


def mark_unlikely(answers: Sequence[AnswerLogps]) -> list[Tensor]:
    """Return 1 for the tenth of all tokens least likely to the sampler, else 0, for each answer."""
    log_probs = torch.cat([answer.sampled for answer in answers])
    low = torch.zeros_like(log_probs)
    low[log_probs.topk(max(1, int(RARE * len(log_probs))), largest=False).indices] = 1.0
    return list(low.split([len(answer.sampled) for answer in answers]))


def difference_of_unlikely(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return the mean of |log q - log p| over the tenth of tokens least likely to the sampler."""
    return masked_difference(answers, mark_unlikely(answers))


def difference_of_likely(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return the mean of |log q - log p| over the other nine tenths of tokens."""
    return masked_difference(answers, [1.0 - low for low in mark_unlikely(answers)])


def masked_difference(answers: Sequence[AnswerLogps], chosen: Sequence[Tensor]) -> Quantity:
    """Return the mean of |log q - log p| over the tokens marked with 1."""
    gaps = [gap(answer) * mask for answer, mask in zip(answers, chosen, strict=True)]
    return ratio_of_sums(gaps, chosen)


def largest(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return the mean over answers of the largest |q - p| in each."""
    return token_mean([(q.exp() - p.exp()).abs().max().reshape(1) for q, p in answers])


def largest_of_long(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return `largest` of the longer half of answers; an odd middle answer is in both halves."""
    return largest(by_length(answers)[len(answers) // 2 :])


def largest_of_short(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return `largest` of the shorter half of the answers, the middle one of an odd number too."""
    return largest(by_length(answers)[: (len(answers) + 1) // 2])


def by_length(answers: Sequence[AnswerLogps]) -> list[AnswerLogps]:
    """Return the answers sorted by length, shortest first."""
    return sorted(answers, key=lambda answer: len(answer.sampled))


def correlation(answers: Sequence[AnswerLogps]) -> Quantity:
    """Return Pearson's correlation of q and p over all tokens.

    The interval is from the jackknife: the correlations with one answer left out.
    """
    pairs = [torch.stack([answer.sampled, answer.trained]).double().exp() for answer in answers]
    middle = torch.cat(pairs, 1).mean(1, keepdim=True)
    sums = torch.stack([moments(pair - middle) for pair in pairs])
    value, n = float(pearson(sums.sum(0))), len(answers)
    left_out = pearson(sums.sum(0) - sums) if n > 1 else torch.full((1,), value)
    half = Z * sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    return Quantity(value, value - half, value + half, n)


def moments(pair: Tensor) -> Tensor:
    """Return number, sums, sums of squares and of products of two rows (2, T), as (6,)."""
    q, p = pair
    return torch.stack([torch.ones_like(q), q, p, q * q, p * p, q * p], 1).sum(0)


def pearson(sums: Tensor) -> Tensor:
    """Return the correlation from sums as of `moments`, of shape (..., 6)."""
    n, q, p, qq, pp, qp = sums.unbind(-1)
    return (n * qp - q * p) / ((n * qq - q * q) * (n * pp - p * p)).sqrt()


@dataclass(frozen=True)
class Arithmetic:
    """Precision of sampler and trainer, with 32-bit weights, and the weights of the sampler.

    Attributes:
        dtype: Autocast dtype; None for that of the run.
        wide_head: Whether the head computes in 32 bits, as with `cast_lm_head_to_fp32`.
        rounds: Whether the sampler has weights rounded to `rollout_bits`.
    """

    dtype: torch.dtype | None = None
    wide_head: bool = False
    rounds: bool = False

    @contextmanager
    def around(self, model: PreTrainedModel, run_dtype: torch.dtype) -> Iterator[None]:
        """Run the model in this precision within the block; `run_dtype` is that of the run.

        The head remains in 32 bits afterwards.

        Raises:
            BadValue: the head is to be widened and is no plain linear layer.
        """
        if self.wide_head:
            widen_head(model)
        dtype = self.dtype or run_dtype
        with torch.autocast(model.device.type, dtype, enabled=dtype != torch.float32):
            yield

    def sampling(self, model: PreTrainedModel, bits: int | None) -> AbstractContextManager[None]:
        """Give the model the sampler's weights within the block."""
        return PastWeights(0).within(model, bits if self.rounds else None)


Measured = Callable[[Sequence[AnswerLogps]], Quantity]
ROLLOUT = Arithmetic(rounds=True)
COARSE, WIDE = Arithmetic(torch.bfloat16), Arithmetic(torch.bfloat16, wide_head=True)
SAMPLER_GAPS: Mapping[str, tuple[Arithmetic, Measured]] = {
    "sampler_correlation/head_float32": (WIDE, correlation),
    "sampler_correlation/head_bfloat16": (COARSE, correlation),
    "sampler_difference/head_float32": (WIDE, difference),
    "sampler_difference/head_bfloat16": (COARSE, difference),
    "sampler_difference/unlikely_tokens": (ROLLOUT, difference_of_unlikely),
    "sampler_difference/likely_tokens": (ROLLOUT, difference_of_likely),
    "largest_sampler_difference/long_answers": (ROLLOUT, largest_of_long),
    "largest_sampler_difference/short_answers": (ROLLOUT, largest_of_short),
}


def trained_logps(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    pad: int,
) -> list[Tensor]:
    """Return the log-probabilities of the tokens of each answer, as a trainer computes them."""
    logps_by_answer: list[Tensor] = []
    for start in range(0, len(prompts), BATCH):
        chunk = answers[start : start + BATCH]
        batch = token_batch(prompts[start : start + BATCH], chunk, pad, None)
        on_device = {name: value.to(model.device) for name, value in batch.items()}
        with torch.inference_mode():
            logps = token_logps(model, on_device, 1.0).logps.double().cpu()
        logps_by_answer += [row[: len(answer)] for row, answer in zip(logps, chunk, strict=True)]
    return logps_by_answer
