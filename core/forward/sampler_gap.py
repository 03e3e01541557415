"""How far what a sampler says of its tokens is from what the trainer says of them."""

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


class Told(NamedTuple):
    """Log-probabilities (T,) of an answer's tokens, by the sampler that drew them and in training.

    They are at temperature 1.
    """

    sampled: Tensor
    trained: Tensor


def difference(told: Sequence[Told]) -> Quantity:
    """The mean of |log q - log p| over all tokens, in nats."""
    return token_mean([gap(one) for one in told])


def gap(one: Told) -> Tensor:
    """|log q - log p| of the tokens of an answer."""
    return (one.sampled - one.trained).abs()


def unlikely(told: Sequence[Told]) -> list[Tensor]:
    """1 for the tenth of all tokens that the sampler finds least likely, else 0, by answer."""
    every = torch.cat([one.sampled for one in told])
    low = torch.zeros_like(every)
    low[every.topk(max(1, int(RARE * len(every))), largest=False).indices] = 1.0
    return list(low.split([len(one.sampled) for one in told]))


def of_unlikely(told: Sequence[Told]) -> Quantity:
    """The mean of |log q - log p| over those tokens."""
    return of_some(told, unlikely(told))


def of_likely(told: Sequence[Told]) -> Quantity:
    """The mean of |log q - log p| over all other tokens."""
    return of_some(told, [1.0 - low for low in unlikely(told)])


def of_some(told: Sequence[Told], chosen: Sequence[Tensor]) -> Quantity:
    """The mean of |log q - log p| over tokens that are chosen by 1."""
    gaps = [gap(one) * some for one, some in zip(told, chosen, strict=True)]
    return ratio_of_sums(gaps, chosen)


def largest(told: Sequence[Told]) -> Quantity:
    """The mean over answers of the largest |q - p| within each."""
    return token_mean([(q.exp() - p.exp()).abs().max().reshape(1) for q, p in told])


def of_long(told: Sequence[Told]) -> Quantity:
    """The same of the longer half of the answers; of an odd number the middle one is in both."""
    return largest(by_length(told)[len(told) // 2 :])


def of_short(told: Sequence[Told]) -> Quantity:
    """The same of the shorter half."""
    return largest(by_length(told)[: (len(told) + 1) // 2])


def by_length(told: Sequence[Told]) -> list[Told]:
    """The answers, the shortest one first."""
    return sorted(told, key=lambda one: len(one.sampled))


def correlation(told: Sequence[Told]) -> Quantity:
    """Pearson's correlation of q and p over all tokens.

    Its interval is of the deviation that leaving out one answer at a time gives (the jackknife).
    """
    pairs = [torch.stack([one.sampled, one.trained]).double().exp() for one in told]
    middle = torch.cat(pairs, 1).mean(1, keepdim=True)
    sums = torch.stack([moments(pair - middle) for pair in pairs])
    value, n = float(pearson(sums.sum(0))), len(told)
    left = pearson(sums.sum(0) - sums) if n > 1 else torch.full((1,), value)
    half = Z * sqrt((n - 1) / n * float(((left - left.mean()) ** 2).sum()))
    return Quantity(value, value - half, value + half, n)


def moments(pair: Tensor) -> Tensor:
    """Number, sums, sums of squares and of products of two rows (2, T)."""
    q, p = pair
    return torch.stack([torch.ones_like(q), q, p, q * q, p * p, q * p], 1).sum(0)


def pearson(sums: Tensor) -> Tensor:
    """The correlation by such sums (..., 6)."""
    n, q, p, qq, pp, qp = sums.unbind(-1)
    return (n * qp - q * p) / ((n * qq - q * q) * (n * pp - p * p)).sqrt()


@dataclass(frozen=True)
class Arithmetic:
    """How both sides compute, with weights in 32 bits, and which weights the sampler has.

    `dtype` is that of autocast, None for that of the run; `wide_head` is `cast_lm_head_to_fp32`;
    only if `rounds` does the sampler have weights of `rollout_bits`.
    """

    dtype: torch.dtype | None = None
    wide_head: bool = False
    rounds: bool = False

    @contextmanager
    def around(self, model: PreTrainedModel, own: torch.dtype) -> Iterator[None]:
        """Let a model compute so, in a run of the type `own`; its head stays wide."""
        if self.wide_head:
            widen_head(model)
        dtype = self.dtype or own
        with torch.autocast(model.device.type, dtype, enabled=dtype != torch.float32):
            yield

    def sampling(self, model: PreTrainedModel, bits: int | None) -> AbstractContextManager[None]:
        """Let a model have the weights to sample from."""
        return PastWeights(0).within(model, bits if self.rounds else None)


Measured = Callable[[Sequence[Told]], Quantity]
ROLLOUT = Arithmetic(rounds=True)
COARSE, WIDE = Arithmetic(torch.bfloat16), Arithmetic(torch.bfloat16, wide_head=True)
SAMPLER_GAPS: Mapping[str, tuple[Arithmetic, Measured]] = {
    "sampler_correlation/head_float32": (WIDE, correlation),
    "sampler_correlation/head_bfloat16": (COARSE, correlation),
    "sampler_difference/head_float32": (WIDE, difference),
    "sampler_difference/head_bfloat16": (COARSE, difference),
    "sampler_difference/unlikely_tokens": (ROLLOUT, of_unlikely),
    "sampler_difference/likely_tokens": (ROLLOUT, of_likely),
    "largest_sampler_difference/long_answers": (ROLLOUT, of_long),
    "largest_sampler_difference/short_answers": (ROLLOUT, of_short),
}


def trained_logps(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    pad: int,
) -> list[Tensor]:
    """Log-probabilities of the tokens of answers, as a trainer computes them."""
    found: list[Tensor] = []
    for start in range(0, len(prompts), BATCH):
        some = answers[start : start + BATCH]
        batch = token_batch(prompts[start : start + BATCH], some, pad, None)
        on_device = {name: value.to(model.device) for name, value in batch.items()}
        with torch.inference_mode():
            logps = token_logps(model, on_device, 1.0).logps.double().cpu()
        found += [row[: len(answer)] for row, answer in zip(logps, some, strict=True)]
    return found
