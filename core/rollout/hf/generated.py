"""Decoding by `transformers.generate` with our draws: for states that are no keys and values."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList

from core.rollout.draw import draw, most_likely, stream, warpers
from core.rollout.engine import Sampled, Sampling, Tokens
from core.rollout.hf.loops import RowStops, cut_rows, generation_config
from core.rollout.support import support


def generated(
    model: PreTrainedModel, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
) -> Iterator[Sampled]:
    """A completion for each of some prompts of one length, so that there is no padding.

    States of recurrences and convolutions run over padding too, in some models whatever the mask.
    """
    ids = torch.tensor([list(prompt) for prompt in prompts], device=model.device)
    draws = Draws(sampling, seeds, model.device)
    stops = [RowStops(sampling.stop, ids.size(1))] if sampling.stop is not None else []
    generate: Any = model.generate  # Any: a union over what it may return
    found = generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        # the most likely token is the one that was drawn; no row reads what fills it behind its end
        generation_config=generation_config(replace(sampling, temperature=0.0), pad_token_id=0),
        logits_processor=LogitsProcessorList([draws]),
        stopping_criteria=StoppingCriteriaList(stops),
    )
    support = torch.stack(draws.support, dim=1) if sampling.keeps_support else None
    return cut_rows(found[:, ids.size(1) :], torch.stack(draws.logps, dim=1), sampling, support)


class Draws(LogitsProcessor):
    """Leaves each row the one token that its own random numbers draw; keeps what was drawn from."""

    def __init__(self, sampling: Sampling, seeds: Sequence[int], device: torch.device):
        self.sampling = sampling
        self.warpers = warpers(sampling)
        streams = [stream(seed, sampling.max_tokens) for seed in seeds]
        self.uniform = torch.stack(streams, dim=1).to(device)
        self.logps: list[Tensor] = []
        self.support: list[Tensor] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # Any: typed for classes of old
        """Logits (B, V) of which one in a row is not minus infinity."""
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
