"""Default rollout engine: shared prompts, continuous batching, one random stream per row."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import logging

from core.core_pool import map_on_cores
from core.rollout.cached import CachedDecoder, Decoder, check_rows, has_key_value_cache
from core.rollout.draw import draw, logits_warpers, most_likely, penalize_repetition, uniform_stream
from core.rollout.engine import ROWS, SampledCompletion, Sampling, Tokens
from core.rollout.hf.generated import generate_rows
from core.rollout.native.free_memory import rows_in_memory
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_needs
from core.rollout.native.static import StaticDecoder, static_needs
from core.rollout.stops import Stop
from core.rollout.support import as_bytes, mask_bytes, support
from eval.errors import BadValue

logger = logging.get_logger(__name__)
CHECK_EVERY = 8  # steps on a GPU between checks for finished rows; each check waits for the GPU
IDLE = 0.25  # share of finished rows at which waiting groups enter or finished rows are dropped


@dataclass(frozen=True)
class Group:
    """A prompt and the indices of the completions that begin with it."""

    prompt: Tokens
    indices: list[int]


class NativeEngine:
    """Engine with its own decoding loop and key-value cache.

    Each distinct prompt is read and cached once for its group. Finished completions leave the batch
    and waiting ones take their rows. A completion's random numbers depend on its seed alone, so
    other completions in the batch do not change it.

    The decoder is the fastest that the model supports: `StaticDecoder` (CUDA graphs, the default on
    a GPU), `PlainDecoder`, `CachedDecoder`, or `transformers.generate` for models with other states
    than keys and values. A warning states once why one of the two slower ones is used.

    Args:
        model: the model that is decoded.
        rows: number of completions decoded at a time; None takes as many as fit in GPU memory.
        static: whether to use the `StaticDecoder`; by default on a GPU where the model allows
            it.

    Raises:
        BadValue: `static=True` and the model cannot be recorded, or it cannot be batched (see
            `check_rows`).
    """

    def __init__(
        self, model: PreTrainedModel, rows: int | None = ROWS, *, static: bool | None = None
    ):
        check_rows(model)
        if static and (missing := static_needs(model)):
            name = type(model).__name__
            raise BadValue(
                f"static=True: a step of this {name} cannot be recorded: needs {missing}"
            )
        self.model = model
        self.by_memory = rows is None
        self.rows = ROWS if rows is None else rows
        self.static = model.device.type == "cuda" if static is None else static
        self.check_every = 1 if model.device.type == "cpu" else CHECK_EVERY
        self.cached = has_key_value_cache(model)
        if (reason := self.slow_reason()) is not None:
            logger.warning_once(f"native rollout engine: {reason}")

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`. On a CPU, prompt groups are spread over one process per thread."""
        prompt_groups = groups(prompts)
        if self.by_memory and self.cached and prompt_groups:
            longest = len(prompt_groups[0].prompt)
            self.rows = rows_in_memory(self.model, longest, sampling.max_tokens)
        processes = (
            min(torch.get_num_threads(), len(prompt_groups))
            if self.model.device.type == "cpu"
            else 1
        )
        if processes < 2:
            yield from self.decode(prompt_groups, sampling, seeds)
            return
        shares = [prompt_groups[start::processes] for start in range(processes)]

        def decoded(share: Sequence[Group]) -> list[tuple[int, SampledCompletion]]:
            return list(self.decode(share, sampling, seeds))

        for share in map_on_cores(decoded, shares, processes):
            yield from share

    def slow_reason(self) -> str | None:
        """Return which slow decoder this model needs and why; None if a fast one supports it."""
        name = type(self.model).__name__
        if not self.cached:
            return f"{name} keeps other states than keys and values: decoded by generate, slower"
        missing = plain_forward_needs(self.model)
        if self.static and missing is not None:
            missing = static_needs(self.model)
        if missing is None:
            return None
        return f"{name} is decoded by its own modules, slower: decoding faster needs {missing}"

    @torch.no_grad()
    def decode(
        self, share: Sequence[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Yield the completions of these groups, decoded batch after batch."""
        if not self.cached:
            yield from self.generate(share, sampling, seeds)
            return
        waiting = deque(share)
        while waiting:
            yield from self.decode_batch(waiting, sampling, seeds)

    def generate(
        self, share: Sequence[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Yield the completions of these groups by `generate`, prompts of one length at a time."""
        for _, equal_length in groupby(share, key=lambda group: len(group.prompt)):
            rows = [(group.prompt, index) for group in equal_length for index in group.indices]
            for start in range(0, len(rows), self.rows):
                prompts, indices = zip(*rows[start : start + self.rows], strict=True)
                row_seeds = [seeds[index] for index in indices]
                yield from zip(
                    indices, generate_rows(self.model, prompts, sampling, row_seeds), strict=True
                )

    def decode_batch(
        self, waiting: deque[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Yield completions of waiting groups until no further group can enter this batch."""
        largest = max(len(group.indices) for group in waiting)
        decoder = self.make_decoder(shared=largest > 1)
        entering_first = take_groups(waiting, max(self.rows, largest))
        live = LiveBatch(sum(len(group.indices) for group in entering_first), self.model, sampling)
        logits = live.admit(decoder, entering_first, range(live.rows), seeds)
        while True:
            tokens = live.extend(logits)
            if live.drawn % min(self.check_every, sampling.max_tokens) == 0:
                yield from live.pop_finished()
                if live.is_done(waiting if decoder.refills else ()):
                    return
                if not waiting:
                    tokens = live.compact(decoder, tokens)
            logits = decoder.step(tokens, live.alive)
            live.refill(decoder, waiting, seeds, logits)

    def make_decoder(self, *, shared: bool) -> Decoder:
        """Return a new decoder; `shared` tells whether several rows continue one prompt."""
        if self.static and static_needs(self.model) is None:
            return StaticDecoder(self.model)
        if plain_forward_needs(self.model) is None:
            return PlainDecoder(self.model, shared=shared)
        return CachedDecoder(self.model)


class LiveBatch:
    """The batch that is being decoded, one completion per row."""

    def __init__(self, rows: int, model: PreTrainedModel, sampling: Sampling):
        self.rows = rows
        self.device = model.device
        self.sampling = sampling
        self.warpers = logits_warpers(sampling)
        self.ends = torch.tensor(sorted(sampling.ends), device=self.device)
        self.indices = [-1] * rows  # index of the completion on each row
        self.idle = list(range(rows))  # rows whose completion is finished
        self.alive = torch.zeros(rows, dtype=torch.bool, device=self.device)
        self.ended = torch.zeros_like(self.alive)  # rows that ended since the last check
        self.drawn = 0  # number of tokens drawn per row
        self.count = torch.zeros(rows, dtype=torch.long, device=self.device)
        shape = (rows, sampling.max_tokens + 1)  # finished rows write to the last column
        self.tokens = torch.zeros(shape, dtype=torch.long, device=self.device)
        self.logps = torch.zeros(shape, device=self.device)
        self.uniform = torch.zeros(shape, device=self.device)
        self.support = None
        if sampling.keeps_support:
            vocabulary = int(model.config.get_text_config().vocab_size)
            self.support = torch.zeros(*shape, mask_bytes(vocabulary), dtype=torch.uint8).to(
                self.device
            )
        # 16-bit logits are drawn from without a copy in 32 bits unless a warper changes them
        self.needs_float32 = not sampling.temperature or bool(self.warpers)
        self.seen = None
        if sampling.repetition_penalty != 1.0:
            vocabulary = int(model.config.get_text_config().vocab_size)
            self.seen = torch.zeros(rows, vocabulary, dtype=torch.bool, device=self.device)
            self.needs_float32 = True

    def admit(
        self,
        decoder: Decoder,
        entering: Sequence[Group],
        free_rows: Sequence[int],
        seeds: Sequence[int],
    ) -> Tensor:
        """Start completions on free rows; return logits of their first tokens (len(rows), V)."""
        row_iterator = iter(free_rows)
        rows = [[next(row_iterator) for _ in group.indices] for group in entering]
        for group, members in zip(entering, rows, strict=True):
            for index, row in zip(group.indices, members, strict=True):
                self.indices[row] = index
                if self.sampling.temperature:
                    self.uniform[row, :-1] = uniform_stream(seeds[index], self.sampling.max_tokens)
                if self.seen is not None:
                    self.seen[row] = False
                    self.seen[row, torch.tensor(group.prompt)] = True
        self.idle = sorted(set(self.idle) - set(free_rows))
        self.alive[list(free_rows)] = True
        self.count[list(free_rows)] = 0
        logits = decoder.admit([group.prompt for group in entering], rows)
        owners = [owner for owner, members in enumerate(rows) for _ in members]
        return logits[owners]

    def refill(
        self,
        decoder: Decoder,
        waiting: deque[Group],
        seeds: Sequence[int],
        logits: Tensor,
    ) -> None:
        """Start waiting groups that fit on the idle rows, if these are many.

        Their logits are written into `logits`.
        """
        if not decoder.refills or len(self.idle) < IDLE * self.rows:
            return
        entering = take_groups(waiting, len(self.idle))
        if entering:
            free_rows = self.idle[: sum(len(group.indices) for group in entering)]
            logits[free_rows] = self.admit(decoder, entering, free_rows, seeds)

    def extend(self, logits: Tensor) -> Tensor:
        """Draw the next token of every row, record it and mark the rows it ends; return it (R,)."""
        if self.needs_float32 or logits.dtype == torch.float64:
            logits = logits.float()
        rows, positions = torch.arange(self.rows, device=self.device), self.count
        if self.seen is not None:
            logits = penalize_repetition(logits, self.seen, self.sampling.repetition_penalty)
        if self.sampling.temperature == 0:
            tokens, logps = most_likely(logits)
        else:
            ids: Any = self.tokens[:, :1]  # the warpers do not read them; typed LongTensor
            logits = self.warpers(ids, logits)
            tokens, logps = draw(logits, self.uniform[rows, positions])
        if self.support is not None:
            self.support[rows, positions] = support(logits)
        self.tokens[rows, positions], self.logps[rows, positions] = tokens, logps
        if self.seen is not None:
            self.seen[rows, tokens] = True
        self.count = self.count + self.alive
        is_last = torch.isin(tokens, self.ends) | (self.count >= self.sampling.max_tokens)
        if self.sampling.stop is not None:
            is_last = is_last | self.stop_mask(self.sampling.stop)
        self.ended, self.alive = self.ended | (is_last & self.alive), self.alive & ~is_last
        self.drawn += 1
        return tokens

    def stop_mask(self, stop: Stop) -> Tensor:
        """Return a mask of the rows whose text so far contains a stop string, shape (R,)."""
        counts, alive = self.count.tolist(), self.alive.tolist()
        is_stopped = [
            is_alive and stop(row[:count])
            for row, count, is_alive in zip(self.tokens.tolist(), counts, alive, strict=True)
        ]
        return torch.tensor(is_stopped, device=self.device)

    def pop_finished(self) -> Iterator[tuple[int, SampledCompletion]]:
        """Yield the completions that ended since the last call, which waits for a GPU."""
        ended = self.ended.nonzero().flatten().tolist()
        self.ended = torch.zeros_like(self.alive)
        self.idle = sorted(self.idle + ended)
        for row in ended:
            count = int(self.count[row])
            tokens = self.tokens[row, :count].tolist()
            is_cut = count >= self.sampling.max_tokens and tokens[-1] not in self.sampling.ends
            if is_cut and self.sampling.stop is not None:
                is_cut = not self.sampling.stop(tokens)
            yield (
                self.indices[row],
                SampledCompletion(
                    tokens=tokens,
                    logps=self.logps[row, :count].tolist(),
                    finish="length" if is_cut else "stop",
                    support=None if self.support is None else as_bytes(self.support[row, :count]),
                ),
            )

    def is_done(self, waiting: Sequence[Group]) -> bool:
        """Return whether all rows are finished and no waiting group can enter this batch."""
        fits = bool(waiting) and len(waiting[0].indices) <= self.rows
        return len(self.idle) == self.rows and not fits

    def compact(self, decoder: Decoder, tokens: Tensor) -> Tensor:
        """Drop the finished rows if they are many and the decoder can; return the tokens left."""
        if decoder.drops and len(self.idle) > IDLE * self.rows:
            return tokens[self.select(decoder)]
        return tokens

    def select(self, decoder: Decoder) -> Tensor:
        """Drop the finished rows; return the indices of the rows that remain, shape (R,)."""
        rows = self.alive.nonzero().flatten()
        decoder.select(rows)
        self.rows, self.idle = len(rows), []
        self.indices = [self.indices[row] for row in rows.tolist()]
        self.alive, self.count, self.ended = (
            self.alive[rows],
            self.count[rows],
            self.ended[rows],
        )
        self.tokens, self.logps = self.tokens[rows], self.logps[rows]
        self.uniform = self.uniform[rows]
        if self.support is not None:
            self.support = self.support[rows]
        if self.seen is not None:
            self.seen = self.seen[rows]
        return rows


def groups(prompts: Sequence[Tokens]) -> list[Group]:
    """Group equal prompts; return the groups by decreasing prompt length, which saves padding."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, prompt in enumerate(prompts):
        by_prompt.setdefault(tuple(prompt), []).append(index)
    return sorted((Group(p, n) for p, n in by_prompt.items()), key=lambda group: -len(group.prompt))


def take_groups(waiting: deque[Group], free_rows: int) -> list[Group]:
    """Remove from the front of the queue the groups that fit in `free_rows` rows; return them."""
    groups_taken: list[Group] = []
    while waiting and len(waiting[0].indices) <= free_rows:
        groups_taken.append(waiting.popleft())
        free_rows -= len(groups_taken[-1].indices)
    return groups_taken
