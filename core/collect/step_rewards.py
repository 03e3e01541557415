"""Step rewards as tensors: the token that ends each step, and the reward of the step."""

from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from core.collect.reward_calls import Value

TokenStep = tuple[int, float]  # (index of the step's last token, its weighted reward)


def ending_token(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], offset: int) -> int:
    """Return the index of the token with which the text reaches `offset` characters.

    A step that ends with the text ends with the last token, so that the end-of-sequence token
    belongs to the last step.
    """

    def characters(n: int) -> int:
        return len(tokenizer.decode(list(ids[:n]), skip_special_tokens=True))

    text = str(tokenizer.decode(list(ids), skip_special_tokens=True))
    if offset >= len(text.rstrip()):
        return len(ids) - 1
    return bisect_left(range(len(ids) + 1), offset, key=characters) - 1


def token_steps(
    weights: Sequence[float],
    values: Sequence[Value],
    ids: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
) -> list[TokenStep]:
    """Return all weighted step rewards of a completion, with the token that ends each step.

    A reward of the whole completion counts as a step at its last token.
    """
    steps: list[TokenStep] = []
    for weight, value in zip(weights, values, strict=True):
        if weight == 0 or value is None or not ids:
            continue
        if isinstance(value, list):
            token_ends = [(ending_token(tokenizer, ids, end), weight * r) for end, r in value]
            steps.extend((max(0, index), reward) for index, reward in token_ends)
        else:
            steps.append((len(ids) - 1, weight * value))
    return steps


def step_tensors(steps: Sequence[Sequence[TokenStep]]) -> tuple[Tensor, Tensor]:
    """Return step rewards and ending tokens, both (N, S); rewards are NaN beyond the last step."""
    width = max(1, *(len(row) for row in steps))
    rewards = torch.full((len(steps), width), torch.nan)
    ends = torch.zeros(len(steps), width, dtype=torch.long)
    for i, row in enumerate(steps):
        for j, (end, reward) in enumerate(row):
            rewards[i, j] = reward
            ends[i, j] = end
    return rewards, ends
