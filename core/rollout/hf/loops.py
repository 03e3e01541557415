"""Engines that run transformers' own loop, or draw exactly as it does, for comparison."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor
from transformers import (
    ContinuousBatchingConfig,
    GenerationConfig,
    PreTrainedModel,
    StoppingCriteria,
    StoppingCriteriaList,
)

from core.errors import EngineError
from core.rollout.cached import CachedDecoder, check_rows, left_pad
from core.rollout.draw import logits_warpers, penalize_repetition
from core.rollout.engine import SampledCompletion, Sampling, Tokens
from core.rollout.stops import Stop
from core.rollout.support import as_bytes, support
from eval.errors import BadValue

BATCH_TOKENS = 4096  # largest number of tokens in a forward pass of the paged engine


@dataclass(frozen=True)
class TransformersEngine:
    """Base of the engines: a model and its padding token."""

    model: PreTrainedModel
    pad: int

    def __post_init__(self):
        check_rows(self.model)


class HfEngine(TransformersEngine):
    """Engine that runs `transformers.generate` on the whole batch.

    Draws come from torch's global generator.
    """

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`; the seeds are not used."""
        del seeds
        ids, mask = left_pad(prompts, self.model.device, self.pad)
        generate: Any = self.model.generate  # Any: a union over what it may return
        stops = [RowStops(sampling.stop, ids.size(1))] if sampling.stop is not None else []
        outputs = generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=generation_config(sampling, self.pad),
            stopping_criteria=StoppingCriteriaList(stops),
            return_dict_in_generate=True,
            output_scores=True,
        )
        tokens = outputs.sequences[:, ids.size(1) :]
        logps = torch.stack(
            [
                scores.float().log_softmax(-1).gather(-1, column.unsqueeze(-1)).squeeze(-1)
                for scores, column in zip(outputs.scores, tokens.unbind(1), strict=True)
            ],
            dim=1,
        )
        supports = [support(scores) for scores in outputs.scores] if sampling.keeps_support else []
        yield from enumerate(truncate_rows(tokens, logps, sampling, stack_supports(supports)))


class EqualEngine(TransformersEngine):
    """Engine with our loop and the batch, logits and draws of `generate`: its tokens are equal."""

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`; the seeds are not used."""
        del seeds
        decoder = CachedDecoder(self.model)
        ids, _ = left_pad(prompts, self.model.device, self.pad)
        width = ids.size(1)
        warpers: Any = logits_warpers(sampling)  # Any: its call takes any keywords
        penalty, seen = sampling.repetition_penalty, self.prompt_tokens(prompts)
        ends = torch.tensor(sorted(sampling.ends), device=ids.device)
        alive = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        logits = decoder.admit(prompts, [[row] for row in range(len(prompts))])
        logps: list[Tensor] = []
        supports: list[Tensor] = []
        while True:
            scores = warpers(ids, penalize_repetition(logits.float(), seen, penalty))
            if sampling.temperature == 0:
                tokens = scores.argmax(-1)
            else:
                tokens = torch.multinomial(scores.softmax(-1), 1).squeeze(-1)
            tokens = tokens.where(alive, tokens.new_tensor(self.pad))
            logps.append(scores.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1))
            if sampling.keeps_support:
                supports.append(support(scores))
            ids = torch.cat([ids, tokens.unsqueeze(1)], dim=1)
            seen.scatter_(1, tokens.unsqueeze(1), True)
            alive = alive & ~torch.isin(tokens, ends)
            if sampling.stop is not None:
                alive = alive & ~row_stops(sampling.stop, ids[:, width:])
            if len(logps) == sampling.max_tokens or not alive.any():
                break
            logits = decoder.step(tokens, alive)
        stacked_logps = torch.stack(logps, dim=1)
        yield from enumerate(
            truncate_rows(ids[:, width:], stacked_logps, sampling, stack_supports(supports))
        )

    def prompt_tokens(self, prompts: Sequence[Tokens]) -> Tensor:
        """Return a mask (R, V) of the tokens in each prompt, which a penalty reads.

        Padding is none of them, as in `generate` of transformers 5.23.
        """
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        seen = torch.zeros(len(prompts), vocabulary, dtype=torch.bool)
        for row, prompt in enumerate(prompts):
            seen[row, torch.tensor(prompt)] = True
        return seen.to(self.model.device)


@dataclass(frozen=True)
class PagedEngine(TransformersEngine):
    """Engine that runs transformers' continuous batching over a paged cache, `generate_batch`.

    Draws come from torch's global generator; stop strings are not supported. The cache has the
    precision of the weights, which autocast would not keep to, so that autocast is off meanwhile.

    Attributes:
        batching: fields of `ContinuousBatchingConfig`. The cache is as large as the batch needs,
            unless they have `num_blocks` or `max_memory_percent`.

    Raises:
        BadValue: there is no such field.
    """

    batching: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        names = {f.name for f in fields(ContinuousBatchingConfig)}
        for name in sorted(self.batching.keys() - names):
            raise BadValue(
                f"transformers_continuous_batching_config has {name!r}: expected some of "
                f"{', '.join(sorted(names))}"
            )

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`; the seeds are not used.

        Raises:
            BadValue: the settings have stop strings.
            EngineError: some prompts got no completion.
        """
        del seeds
        if sampling.stop is not None:
            raise BadValue("the engine 'hf-cb' has no stop strings: use 'native' or 'hf'")
        model: Any = self.model  # Any: the method comes from a mixin without types
        with without_autocast(self.model):
            outputs = model.generate_batch(
                inputs=[list(prompt) for prompt in prompts],
                generation_config=generation_config(sampling, self.pad),
                continuous_batching_config=self.batching_config(
                    [len(prompt) + sampling.max_tokens for prompt in prompts]
                ),
                progress_bar=False,
            )
        failed = [output.error for output in outputs.values() if output.error]
        if failed or len(outputs) < len(prompts):
            raise EngineError(
                f"continuous batching of transformers finished {len(outputs) - len(failed)} of "
                f"{len(prompts)} completions: {(failed or ['see the messages above'])[0]}"
            )
        keys = sorted(outputs, key=lambda key: int(key.rsplit("_", 1)[-1]))
        for number, key in enumerate(keys):
            tokens = list(outputs[key].generated_tokens)
            yield (
                number,
                SampledCompletion(
                    tokens=tokens,
                    logps=list(outputs[key].logprobs),
                    finish="stop" if tokens[-1] in sampling.ends else "length",
                ),
            )

    def batching_config(self, lengths: Sequence[int]) -> ContinuousBatchingConfig:
        """Return the settings of a batch of sequences of at most these lengths."""
        given: dict[str, Any] = dict(self.batching)  # Any: each field has its own type
        if not given.keys() & {"num_blocks", "max_memory_percent"}:
            # by default most of the free memory, even for small batches
            given["num_blocks"] = sum(map(cache_blocks, lengths))
        return ContinuousBatchingConfig(
            **{"max_batch_tokens": BATCH_TOKENS, **given, "return_logprobs": True}
        )


@contextmanager
def without_autocast(model: PreTrainedModel) -> Iterator[None]:
    """Within the context, turn off autocast, also that of accelerate around a trained model."""
    attributes = vars(model)
    wrapped = attributes.get("forward")
    if "_original_forward" in attributes:
        attributes["forward"] = attributes["_original_forward"]
    try:
        with torch.autocast(model.device.type, enabled=False):
            yield
    finally:
        if wrapped is not None:
            attributes["forward"] = wrapped


def cache_blocks(tokens: int) -> int:
    """Return the number of paged-cache blocks that a sequence of `tokens` tokens may need."""
    return -(-tokens // ContinuousBatchingConfig().page_size) + 1


class RowStops(StoppingCriteria):
    """Stopping criterion of `generate` that calls our stop function."""

    def __init__(self, stop: Stop, width: int):
        self.stop = stop
        self.width = width

    def __call__(self, input_ids: Tensor, scores: Any, **_: object) -> Any:  # noqa: ARG002
        """Return a mask of the rows that end here, shape (B,)."""
        return row_stops(self.stop, input_ids[:, self.width :])


def row_stops(stop: Stop, completions: Tensor) -> Tensor:
    """Return a mask of the completions for which `stop` is true, shape (B,)."""
    return torch.tensor([stop(row) for row in completions.tolist()], device=completions.device)


def generation_config(sampling: Sampling, pad_token_id: int) -> GenerationConfig:
    """Return the transformers `GenerationConfig` with the meaning of these settings."""
    sampling_fields = {
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
        **(sampling_fields if sampling.temperature > 0 else {}),
        **dict(sampling.keywords),
    )


def stack_supports(columns: Sequence[Tensor]) -> Tensor | None:
    """Stack the supports of T steps to shape (B, T, bytes); return None for no steps."""
    return torch.stack(list(columns), dim=1) if columns else None


def truncate_rows(
    tokens: Tensor, logps: Tensor, sampling: Sampling, supports: Tensor | None = None
) -> Iterator[SampledCompletion]:
    """Yield each row of tokens and log-probabilities (B, T), cut after its first end."""
    for index, (row, values) in enumerate(zip(tokens.tolist(), logps.tolist(), strict=True)):
        end = next(
            (
                length
                for length, token in enumerate(row, start=1)
                if token in sampling.ends
                or (sampling.stop is not None and sampling.stop(row[:length]))
            ),
            None,
        )
        yield SampledCompletion(
            tokens=row[:end],
            logps=values[:end],
            finish="stop" if end else "length",
            support=None if supports is None else as_bytes(supports[index, :end]),
        )
