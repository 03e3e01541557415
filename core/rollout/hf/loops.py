"""Engines that are transformers' own loop, or draw exactly as it does: to compare with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import (
    ContinuousBatchingConfig,
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)

from core.rollout.cached import CachedDecoder, check_rows, left_pad
from core.rollout.draw import warpers
from core.rollout.engine import Sampled, Sampling, Tokens
from core.rollout.stops import Stop
from core.rollout.support import as_bytes, support
from eval.errors import BadValue

BATCH_TOKENS = 4096  # of one forward pass of the paged engine


@dataclass(frozen=True)
class Transformers:
    """What all of them decode: a model, and the token that fills its batches."""

    model: PreTrainedModel
    pad: int

    def __post_init__(self):
        check_rows(self.model)


class HfEngine(Transformers):
    """`transformers.generate` on the whole batch. Draws come from torch's global generator."""

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Engine.sample`; the seeds are not used."""
        del seeds
        ids, mask = left_pad(prompts, self.model.device, self.pad)
        generate: Any = self.model.generate  # Any: a union over what it may return
        stops = [RowStops(sampling.stop, ids.size(1))] if sampling.stop is not None else []
        found = generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=generation_config(sampling, self.pad),
            stopping_criteria=StoppingCriteriaList(stops),
            return_dict_in_generate=True,
            output_scores=True,
        )
        tokens = found.sequences[:, ids.size(1) :]
        logps = torch.stack(
            [
                scores.float().log_softmax(-1).gather(-1, column.unsqueeze(-1)).squeeze(-1)
                for scores, column in zip(found.scores, tokens.unbind(1), strict=True)
            ],
            dim=1,
        )
        kept = [support(scores) for scores in found.scores] if sampling.keeps_support else []
        yield from enumerate(cut_rows(tokens, logps, sampling, stacked(kept)))


class EqualEngine(Transformers):
    """Our loop with the batch, the logits and the draws of `generate`: its very tokens."""

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Engine.sample`; the seeds are not used."""
        del seeds
        decoder = CachedDecoder(self.model)
        ids, _ = left_pad(prompts, self.model.device, self.pad)
        width = ids.size(1)
        processors = LogitsProcessorList(warpers(sampling))
        if sampling.repetition_penalty != 1.0:
            penalty = RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)
            processors.insert(0, penalty)  # it sees the padding too, as in `generate`
        ends = torch.tensor(sorted(sampling.ends), device=ids.device)
        alive = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        logits = decoder.admit(prompts, [[row] for row in range(len(prompts))])
        logps: list[Tensor] = []
        kept: list[Tensor] = []
        while True:
            process: Any = processors  # Any: its call takes any keywords
            scores = process(ids, logits.float())
            if sampling.temperature == 0:
                tokens = scores.argmax(-1)
            else:
                tokens = torch.multinomial(scores.softmax(-1), 1).squeeze(-1)
            tokens = tokens.where(alive, tokens.new_tensor(self.pad))
            logps.append(scores.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1))
            if sampling.keeps_support:
                kept.append(support(scores))
            ids = torch.cat([ids, tokens.unsqueeze(1)], dim=1)
            alive = alive & ~torch.isin(tokens, ends)
            if sampling.stop is not None:
                alive = alive & ~row_stops(sampling.stop, ids[:, width:])
            if len(logps) == sampling.max_tokens or not alive.any():
                break
            logits = decoder.step(tokens, alive)
        found = torch.stack(logps, dim=1)
        yield from enumerate(cut_rows(ids[:, width:], found, sampling, stacked(kept)))


class PagedEngine(Transformers):
    """transformers' continuous batching over a paged cache, `generate_batch`.

    Draws come from torch's global generator; stop strings are not supported.
    """

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Engine.sample`; the seeds are not used.

        Raises:
            BadValue: stop strings are asked for.
        """
        del seeds
        if sampling.stop is not None:
            raise BadValue("the engine 'hf-cb' has no stop strings: use 'native' or 'hf'")
        model: Any = self.model  # Any: the method comes from a mixin without types
        outputs = model.generate_batch(
            inputs=[list(prompt) for prompt in prompts],
            generation_config=generation_config(sampling, self.pad),
            continuous_batching_config=ContinuousBatchingConfig(
                # left to itself it takes most of the free memory, however little there is to do
                num_blocks=sum(blocks(len(prompt) + sampling.max_tokens) for prompt in prompts),
                max_batch_tokens=BATCH_TOKENS,
                return_logprobs=True,
            ),
            progress_bar=False,
        )
        keys = sorted(outputs, key=lambda key: int(key.rsplit("_", 1)[-1]))
        for number, key in enumerate(keys):
            tokens = list(outputs[key].generated_tokens)
            yield (
                number,
                Sampled(
                    tokens=tokens,
                    logps=list(outputs[key].logprobs),
                    finish="stop" if tokens[-1] in sampling.ends else "length",
                ),
            )


def blocks(tokens: int) -> int:
    """Blocks of the paged cache that a sequence of so many tokens may fill, and one to begin."""
    return -(-tokens // ContinuousBatchingConfig().page_size) + 1


class RowStops(StoppingCriteria):
    """Our stop function as a criterion of `generate`."""

    def __init__(self, stop: Stop, width: int):
        self.stop = stop
        self.width = width

    def __call__(self, input_ids: Tensor, scores: Any, **_: object) -> Any:  # noqa: ARG002
        """Whether each row ends (B,)."""
        return row_stops(self.stop, input_ids[:, self.width :])


def row_stops(stop: Stop, completions: Tensor) -> Tensor:
    """Whether each completion ends here (B,)."""
    return torch.tensor([stop(row) for row in completions.tolist()], device=completions.device)


def generation_config(sampling: Sampling, pad_token_id: int) -> GenerationConfig:
    """Transformers' settings of the same meaning."""
    drawn = {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
    }
    return GenerationConfig(
        max_new_tokens=sampling.max_tokens,
        do_sample=sampling.temperature > 0,
        eos_token_id=sorted(sampling.ends),
        pad_token_id=pad_token_id,
        repetition_penalty=sampling.repetition_penalty,
        **(drawn if sampling.temperature > 0 else {}),
        **dict(sampling.keywords),
    )


def stacked(columns: Sequence[Tensor]) -> Tensor | None:
    """What was kept of the support step by step, all together (B, T, bytes); None if nothing."""
    return torch.stack(list(columns), dim=1) if columns else None


def cut_rows(
    tokens: Tensor, logps: Tensor, sampling: Sampling, kept: Tensor | None = None
) -> Iterator[Sampled]:
    """Each row (T,) up to where it ends."""
    for number, (row, values) in enumerate(zip(tokens.tolist(), logps.tolist(), strict=True)):
        count = next(
            (
                place
                for place, token in enumerate(row, start=1)
                if token in sampling.ends
                or (sampling.stop is not None and sampling.stop(row[:place]))
            ),
            None,
        )
        yield Sampled(
            tokens=row[:count],
            logps=values[:count],
            finish="stop" if count else "length",
            support=None if kept is None else as_bytes(kept[number, :count]),
        )
