"""Sampling from a mixture of two models, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.losses.divergence import mixture
from core.rollout.cached import CachedDecoder
from core.rollout.draw import draw, logits_warpers, uniform_stream
from core.rollout.engine import ROWS, SampledCompletion, Sampling, Tokens
from core.rollout.hf.loops import truncate_rows


@dataclass(frozen=True)
class MixedEngine:
    """Engine that draws each token from (1 - alpha) S + alpha T, of two models S and T.

    Both are at the temperature of sampling, and over the tokens that both heads have; what cuts the
    distribution comes after the mixture. arXiv 2306.08543 s2.2.

    Attributes:
        student: The model S.
        teacher: The model T.
        alpha: Probability of T, above 0 and below 1.
    """

    student: PreTrainedModel
    teacher: PreTrainedModel
    alpha: float

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`."""
        for start in range(0, len(prompts), ROWS):
            rows = slice(start, start + ROWS)
            completions = self.sample_rows(prompts[rows], sampling, seeds[rows])
            yield from enumerate(completions, start)

    def sample_rows(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[SampledCompletion]:
        """Yield the completions of prompts that are decoded together."""
        decoders = [CachedDecoder(model) for model in (self.student, self.teacher)]
        logits = [d.admit(prompts, [[row] for row in range(len(prompts))]) for d in decoders]
        device = logits[0].device
        warpers = logits_warpers(replace(sampling, temperature=1.0))
        streams = [uniform_stream(seed, sampling.max_tokens) for seed in seeds]
        ends = torch.tensor(sorted(sampling.ends), device=device)
        alive = torch.ones(len(prompts), dtype=torch.bool, device=device)
        drawn: list[tuple[Tensor, Tensor]] = []
        for uniform in torch.stack(streams, dim=1).to(device):
            mixed = self.mix(logits, sampling.temperature)
            drawn.append(draw(warpers(torch.LongTensor(len(prompts), 0), mixed), uniform))
            tokens = drawn[-1][0]
            alive = alive & ~torch.isin(tokens, ends)
            if not alive.any():
                break
            logits = [decoder.step(tokens, alive) for decoder in decoders]
        tokens, logps = (torch.stack(columns, dim=1) for columns in zip(*drawn, strict=True))
        yield from truncate_rows(tokens, logps, sampling)

    def mix(self, logits: Sequence[Tensor], temperature: float) -> Tensor:
        """Return log-probabilities (R, V) of the mixture from the logits of both models."""
        shared = min(x.size(-1) for x in logits)
        student, teacher = ((x[:, :shared].float() / temperature).log_softmax(-1) for x in logits)
        return mixture(student, teacher, self.alpha)
