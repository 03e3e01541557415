"""Decoding by `transformers.generate` with our draws, for models without a key-value cache."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList

from core.rollout.draw import draw, logits_warpers, most_likely, uniform_stream
from core.rollout.engine import SampledCompletion, Sampling, Tokens
from core.rollout.hf.loops import RowStops, generation_config, truncate_rows
from core.rollout.support import support


def generate_rows(
    model: PreTrainedModel, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
) -> Iterator[SampledCompletion]:
    """Yield a completion per prompt; the prompts have equal length, so there is no padding.

    Some recurrent and convolutional models update their states on padding too, even if it is
    masked.
    """
    ids = torch.tensor([list(prompt) for prompt in prompts], device=model.device)
    draws = Draws(sampling, seeds, model.device)
    stops = [RowStops(sampling.stop, ids.size(1))] if sampling.stop is not None else []
    generate: Any = model.generate  # Any: of a mixin without types
    sequences = generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        # greedy search takes the token that `Draws` has drawn; the padding is cut off below
        generation_config=generation_config(replace(sampling, temperature=0.0), pad_token_id=0),
        logits_processor=LogitsProcessorList([draws]),
        stopping_criteria=StoppingCriteriaList(stops),
    )
    support = torch.stack(draws.support, dim=1) if sampling.keeps_support else None
    return truncate_rows(
        sequences[:, ids.size(1) :], torch.stack(draws.logps, dim=1), sampling, support
    )


class Draws(LogitsProcessor):
    """Logits processor that draws each row's token with its own random numbers.

    It leaves only the drawn token a finite logit, and stores log-probabilities and support.
    """

    def __init__(self, sampling: Sampling, seeds: Sequence[int], device: torch.device):
        self.sampling = sampling
        self.warpers = logits_warpers(sampling)
        streams = [uniform_stream(seed, sampling.max_tokens) for seed in seeds]
        self.uniform = torch.stack(streams, dim=1).to(device)
        self.logps: list[Tensor] = []
        self.support: list[Tensor] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # Any: typed as legacy LongTensor
        """Return logits (B, V) that are minus infinity except at the drawn token of each row."""
        logits = scores.float()
        if self.sampling.temperature == 0:
            tokens, logps = most_likely(logits)
        else:
            uniform, logits = self.uniform[len(self.logps)], self.warpers(input_ids, logits)
            tokens, logps = draw(logits, uniform)
        self.logps.append(logps)
        if self.sampling.keeps_support:
            self.support.append(support(logits))
        return torch.full_like(scores, -torch.inf).scatter(1, tokens.unsqueeze(1), 0.0)
