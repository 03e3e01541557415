"""Quantities of a policy's own answers, from its and its starting model's probabilities."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.data.collate import DataCollatorForLanguageModeling
from core.data.conversations import Row
from core.data.pairs import prompt_of
from core.data.sft import IGNORED
from core.forward.labelled import labelled_logps
from core.forward.quantities import BATCH, Quantity, ratio_of_sums, token_mean
from core.rollout.seeds import seed_of
from core.samplers.policy import PolicySampler
from eval.samples.evaluation import Decoding

TOP = 0.2  # share of tokens that count as uncertain, arXiv 2506.01939


class AnswerStatistics(NamedTuple):
    """Log-probability of each token of an answer, and entropy of its distribution, both (T,)."""

    logps: Tensor
    entropy: Tensor


class StatisticsOfBoth(NamedTuple):
    """Statistics of each of the same answers under a policy and its starting model."""

    policy: Sequence[AnswerStatistics]
    start: Sequence[AnswerStatistics]


def answer_statistics(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    pad: int,
) -> list[AnswerStatistics]:
    """Return log-probabilities and entropies of answers, given prompts and answers as token ids."""
    collate, statistics = DataCollatorForLanguageModeling(pad), list[AnswerStatistics]()
    rows = labelled_rows(prompts, answers)
    for start in range(0, len(rows), BATCH):
        chunk = rows[start : start + BATCH]
        inputs = {name: value.to(model.device) for name, value in collate(chunk).items()}
        labels = inputs.pop("labels")
        with torch.inference_mode():
            labelled = labelled_logps(model, inputs, labels, with_logits=False)
        counts = [len(answer) for answer in answers[start : start + BATCH]]
        columns = (x.double().cpu().split(counts) for x in (labelled.logps, labelled.entropy))
        statistics += [AnswerStatistics(*pair) for pair in zip(*columns, strict=True)]
    return statistics


def labelled_rows(prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]) -> list[Row]:
    """Return rows of token ids whose labels are the tokens of the answers."""
    return [
        {"input_ids": [*prompt, *answer], "labels": [IGNORED] * len(prompt) + [*answer]}
        for prompt, answer in zip(prompts, answers, strict=True)
    ]


def answers_of_both(
    sampler: PolicySampler, start: PreTrainedModel, rows: Sequence[Row], tokens: int
) -> StatisticsOfBoth:
    """Draw one answer of a policy at temperature 1 to each row; return what both models find.

    Args:
        sampler: The policy.
        start: The starting model, in evaluation mode.
        rows: Rows with prompts, or pairs that begin with them.
        tokens: Largest length of an answer.
    """
    prompts, answers = draw_answers(sampler, rows, tokens)
    pad = sampler.tokenizer.pad_token_id or 0
    return StatisticsOfBoth(
        *(answer_statistics(m, prompts, answers, pad) for m in (sampler.model.eval(), start))
    )


def draw_answers(
    sampler: PolicySampler, rows: Sequence[Row], tokens: int, samples: int = 1
) -> tuple[list[list[int]], list[list[int]]]:
    """Draw answers at temperature 1 to each row; return prompts and answers as token ids.

    Args:
        sampler: The policy.
        rows: Rows with prompts, or pairs that begin with them.
        tokens: Largest length of an answer.
        samples: Number of answers to each row.
    """
    texts = map(prompt_of, rows)
    encoded = [sampler.encode(text, chat=not isinstance(text, str)) for text in texts]
    prompts = [ids for ids in encoded for _ in range(samples)]
    decoding = Decoding(max_tokens=tokens, temperature=1.0)
    seeds = [seed_of(number % samples, ids) for number, ids in enumerate(prompts)]
    return prompts, sampler.draw(prompts, decoding, seeds)


def divergence(policy: Sequence[AnswerStatistics], start: Sequence[AnswerStatistics]) -> Quantity:
    """Return KL(policy, start) in nats per token: the mean of log pi - log pi_start over answers.

    The answers are sampled from the policy.
    """
    return token_mean([a.logps - b.logps for a, b in zip(policy, start, strict=True)])


def share_of_top(policy: Sequence[AnswerStatistics], start: Sequence[AnswerStatistics]) -> Quantity:  # noqa: ARG001 - as of all
    """Return the share of total entropy in the fifth of tokens with the highest entropy."""
    entropies = [answer.entropy for answer in policy]
    tops = zip(entropies, mark_uncertain(policy), strict=True)
    return ratio_of_sums([entropy * top for entropy, top in tops], entropies)


def overlap_of_tops(
    policy: Sequence[AnswerStatistics], start: Sequence[AnswerStatistics]
) -> Quantity:
    """Return the share of the policy's highest-entropy fifth that is also in the start's."""
    tops, start_tops = mark_uncertain(policy), mark_uncertain(start)
    return ratio_of_sums([a * b for a, b in zip(tops, start_tops, strict=True)], tops)


def mark_uncertain(answers: Sequence[AnswerStatistics]) -> list[Tensor]:
    """Return 1 for the fifth of all tokens with the highest entropy, else 0, for each answer."""
    entropies = torch.cat([answer.entropy for answer in answers])
    top = torch.zeros_like(entropies)
    top[entropies.topk(max(1, int(TOP * len(entropies)))).indices] = 1.0
    return list(top.split([len(answer.entropy) for answer in answers]))


def length(policy: Sequence[AnswerStatistics], start: Sequence[AnswerStatistics]) -> Quantity:  # noqa: ARG001 - as of all
    """Return the mean number of tokens of an answer."""
    lengths = [torch.tensor([float(len(answer.logps))]) for answer in policy]
    return ratio_of_sums(lengths, [torch.ones(1)] * len(lengths))


Measured = Callable[[Sequence[AnswerStatistics], Sequence[AnswerStatistics]], Quantity]
OWN_ANSWERS: Mapping[str, Measured] = {
    "kl_to_start": divergence,
    "answer_tokens": length,
    "entropy/share_of_top_fifth": share_of_top,
    "entropy/overlap_of_top_fifth": overlap_of_tops,
}
