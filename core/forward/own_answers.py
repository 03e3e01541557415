"""Quantities of a policy's own answers: what it and its starting model say of their tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.data.collate import DataCollatorForLanguageModeling
from core.data.sft import IGNORED
from core.forward.labelled import labelled_logps
from core.forward.quantities import BATCH, Quantity, ratio_of_sums, token_mean

TOP = 0.2  # share of tokens that count as uncertain, arXiv 2506.01939


class Said(NamedTuple):
    """Log-probability of each token of an answer, and entropy of what could have stood there."""

    logps: Tensor
    entropy: Tensor


def said_of(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    pad: int,
) -> list[Said]:
    """What a model says of the tokens of answers to prompts, both as token ids."""
    collate, found = DataCollatorForLanguageModeling(pad), list[Said]()
    rows = [
        {"input_ids": [*prompt, *answer], "labels": [IGNORED] * len(prompt) + [*answer]}
        for prompt, answer in zip(prompts, answers, strict=True)
    ]
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        inputs = {name: value.to(model.device) for name, value in collate(some).items()}
        labels = inputs.pop("labels")
        with torch.inference_mode():
            told = labelled_logps(model, inputs, labels, with_logits=False)
        counts = [len(answer) for answer in answers[start : start + BATCH]]
        columns = (x.double().cpu().split(counts) for x in (told.logps, told.entropy))
        found += [Said(*both) for both in zip(*columns, strict=True)]
    return found


def divergence(own: Sequence[Said], begun: Sequence[Said]) -> Quantity:
    """KL(policy, start) in nats per token: the mean of log pi - log pi_start over pi's answers."""
    return token_mean([a.logps - b.logps for a, b in zip(own, begun, strict=True)])


def share_of_top(own: Sequence[Said], begun: Sequence[Said]) -> Quantity:  # noqa: ARG001 - as of all
    """The share of all entropy that is in the fifth of the tokens with the highest."""
    entropies = [said.entropy for said in own]
    tops = zip(entropies, uncertain(own), strict=True)
    return ratio_of_sums([entropy * top for entropy, top in tops], entropies)


def overlap_of_tops(own: Sequence[Said], begun: Sequence[Said]) -> Quantity:
    """The share of the fifth with the highest entropy that is in the start's fifth too."""
    tops, others = uncertain(own), uncertain(begun)
    return ratio_of_sums([a * b for a, b in zip(tops, others, strict=True)], tops)


def uncertain(said: Sequence[Said]) -> list[Tensor]:
    """1 for the fifth of all tokens with the highest entropy, else 0, answer by answer."""
    every = torch.cat([one.entropy for one in said])
    top = torch.zeros_like(every)
    top[every.topk(max(1, int(TOP * len(every)))).indices] = 1.0
    return list(top.split([len(one.entropy) for one in said]))


Measured = Callable[[Sequence[Said], Sequence[Said]], Quantity]
OWN_ANSWERS: Mapping[str, Measured] = {
    "kl_to_start": divergence,
    "entropy/share_of_top_fifth": share_of_top,
    "entropy/overlap_of_top_fifth": overlap_of_tops,
}
