"""The default rollout engine: shared prompts, rows that leave and enter, a stream for each row."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import logging

from core.rollout.cached import CachedDecoder, check_rows, has_key_value_cache
from core.rollout.draw import draw, most_likely, penalised, stream, warpers
from core.rollout.engine import Sampled, Sampling, Tokens
from core.rollout.hf.generated import generated
from core.rollout.native.core_pool import each_on_a_core
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_lacks
from core.rollout.native.room import ROWS, rows_in_memory
from core.rollout.native.static import StaticDecoder, static_lacks
from core.rollout.stops import Stop
from core.rollout.support import as_bytes, support, wide
from eval.errors import BadValue

logger = logging.get_logger(__name__)
IDLE = 0.25  # share of finished rows from which on others take their places, or they are dropped


@dataclass(frozen=True)
class Group:
    """A prompt and the numbers of the completions that begin with it."""

    prompt: Tokens
    numbers: list[int]


class NativeEngine:
    """Decodes with a key-value cache of its own.

    Each distinct prompt is read once and kept once for its group. Finished completions leave, and
    waiting ones take their places. Every completion has a stream of random numbers that depends on
    its seed alone, so it does not depend on what is decoded beside it. `rows` completions are
    decoded at a time; None are as many as the free memory of a GPU holds.

    `static` chooses the `StaticDecoder`. By default it decodes on a GPU wherever a step can be
    recorded; otherwise the `PlainDecoder` does where it computes the same as the model's modules,
    else the `CachedDecoder`, and `generated` where a model keeps other states than keys and values.
    Which of the two slower ones decodes, and why, is said once.

    Raises:
        BadValue: `static` is asked for, and the model cannot be decoded so; or none of its rows can
            be, see `check_rows`.
    """

    def __init__(
        self, model: PreTrainedModel, rows: int | None = ROWS, *, static: bool | None = None
    ):
        check_rows(model)
        if static and (lacks := static_lacks(model)):
            name = type(model).__name__
            raise BadValue(f"static=True: a step of this {name} cannot be recorded: needs {lacks}")
        self.model = model
        self.by_memory = rows is None
        self.rows = ROWS if rows is None else rows
        self.static = model.device.type == "cuda" if static is None else static
        self.cached = has_key_value_cache(model)
        if (reason := self.slow_because()) is not None:
            logger.warning_once(f"native rollout engine: {reason}")

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Engine.sample`; a CPU's threads decode apart from one another."""
        found = groups(prompts)
        if self.by_memory and self.cached and found:
            longest = len(found[0].prompt)
            self.rows = rows_in_memory(self.model, longest, sampling.max_tokens)
        parts = min(torch.get_num_threads(), len(found)) if self.model.device.type == "cpu" else 1
        if parts < 2:
            yield from self.run(found, sampling, seeds)
            return
        shares = [found[start::parts] for start in range(parts)]
        for share in each_on_a_core(lambda part: list(self.run(part, sampling, seeds)), shares):
            yield from share

    def slow_because(self) -> str | None:
        """Which slower way this model is decoded in, and why; None for the faster ones."""
        name = type(self.model).__name__
        if not self.cached:
            return f"{name} keeps other states than keys and values: decoded by generate, slower"
        lacks = plain_forward_lacks(self.model)
        if self.static and lacks is not None:
            lacks = static_lacks(self.model)
        if lacks is None:
            return None
        return f"{name} is decoded by its own modules, slower: decoding faster needs {lacks}"

    @torch.no_grad()
    def run(
        self, share: Sequence[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """Finish these groups, one batch after the other where rows cannot enter later."""
        if not self.cached:
            yield from self.generated(share, sampling, seeds)
            return
        waiting = deque(share)
        while waiting:
            yield from self.batch(waiting, sampling, seeds)

    def generated(
        self, share: Sequence[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """The same by `generate`, prompts of one length at a time."""
        for _, same in groupby(share, key=lambda group: len(group.prompt)):
            rows = [(group.prompt, number) for group in same for number in group.numbers]
            for start in range(0, len(rows), self.rows):
                prompts, numbers = zip(*rows[start : start + self.rows], strict=True)
                own = [seeds[number] for number in numbers]
                yield from zip(numbers, generated(self.model, prompts, sampling, own), strict=True)

    def batch(
        self, waiting: deque[Group], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """Finish what is waiting, or as much of it as can enter this batch."""
        largest = max(len(group.numbers) for group in waiting)
        decoder = self.decoder(shared=largest > 1)
        first = taken(waiting, max(self.rows, largest))
        live = Live(sum(len(group.numbers) for group in first), self.model, sampling)
        logits = live.admit(decoder, first, range(live.rows), seeds)
        while True:
            tokens = live.extend(logits)
            yield from live.finished()
            idle = live.idle
            enters = waiting and decoder.refills and len(waiting[0].numbers) <= live.rows
            if len(idle) == live.rows and not enters:
                return
            if decoder.drops and not waiting and len(idle) > IDLE * live.rows:
                tokens = tokens[live.select(decoder)]
            logits = decoder.step(tokens, live.alive)
            if waiting and decoder.refills and len(idle) >= IDLE * live.rows:
                entering = taken(waiting, len(idle))
                if entering:
                    places = idle[: sum(len(group.numbers) for group in entering)]
                    logits[places] = live.admit(decoder, entering, places, seeds)

    def decoder(self, *, shared: bool) -> PlainDecoder | CachedDecoder:
        """What decodes a batch; `shared`: several rows go on from one prompt."""
        if self.static and static_lacks(self.model) is None:
            return StaticDecoder(self.model)
        if plain_forward_lacks(self.model) is None:
            return PlainDecoder(self.model, shared=shared)
        return CachedDecoder(self.model)


class Live:
    """The completions that are decoded now, each at a place (row) of its own."""

    def __init__(self, rows: int, model: PreTrainedModel, sampling: Sampling):
        self.rows = rows
        self.device = model.device
        self.sampling = sampling
        self.warpers = warpers(sampling)
        self.ends = torch.tensor(sorted(sampling.ends), device=self.device)
        self.numbers = [-1] * rows  # of the completions
        self.idle = list(range(rows))  # places whose completion is finished
        self.alive = torch.zeros(rows, dtype=torch.bool, device=self.device)
        self.just_ended = self.alive
        self.count = torch.zeros(rows, dtype=torch.long, device=self.device)
        shape = (rows, sampling.max_tokens)
        self.tokens = torch.zeros(shape, dtype=torch.long, device=self.device)
        self.logps = torch.zeros(shape, device=self.device)
        self.uniform = torch.zeros(shape, device=self.device)
        self.support = None
        if sampling.keeps_support:
            vocabulary = int(model.config.get_text_config().vocab_size)
            self.support = torch.zeros(*shape, wide(vocabulary), dtype=torch.uint8).to(self.device)
        self.seen = None
        if sampling.repetition_penalty != 1.0:
            vocabulary = int(model.config.get_text_config().vocab_size)
            self.seen = torch.zeros(rows, vocabulary, dtype=torch.bool, device=self.device)

    def admit(
        self,
        decoder: PlainDecoder | CachedDecoder,
        entering: Sequence[Group],
        places: Sequence[int],
        seeds: Sequence[int],
    ) -> Tensor:
        """Begin completions at free places; logits (len(places), V) of their first tokens."""
        left = iter(places)
        rows = [[next(left) for _ in group.numbers] for group in entering]
        for group, members in zip(entering, rows, strict=True):
            for number, row in zip(group.numbers, members, strict=True):
                self.numbers[row] = number
                if self.sampling.temperature:
                    self.uniform[row] = stream(seeds[number], self.sampling.max_tokens)
                if self.seen is not None:
                    self.seen[row] = False
                    self.seen[row, torch.tensor(group.prompt)] = True
        self.idle = sorted(set(self.idle) - set(places))
        self.alive[list(places)] = True
        self.count[list(places)] = 0
        logits = decoder.admit([group.prompt for group in entering], rows)
        owners = [owner for owner, members in enumerate(rows) for _ in members]
        return logits[owners]

    def extend(self, logits: Tensor) -> Tensor:
        """Draw the next token (R,) of every row."""
        logits = logits.float()
        rows = torch.arange(self.rows, device=self.device)
        at = self.count.clamp(max=self.sampling.max_tokens - 1)
        if self.seen is not None:
            logits = penalised(logits, self.seen, self.sampling.repetition_penalty)
        if self.sampling.temperature == 0:
            tokens, logps = most_likely(logits)
        else:
            ids: Any = self.tokens[:, :1]  # the warpers do not look at them; typed LongTensor
            logits = self.warpers(ids, logits)
            tokens, logps = draw(logits, self.uniform[rows, at])
        if self.support is not None:
            self.support[rows, at] = support(logits)
        self.tokens[rows, at], self.logps[rows, at] = tokens, logps
        if self.seen is not None:
            self.seen[rows, tokens] = True
        self.count = self.count + self.alive
        ended = torch.isin(tokens, self.ends) | (self.count >= self.sampling.max_tokens)
        if self.sampling.stop is not None:
            ended = ended | self.stopped(self.sampling.stop)
        self.just_ended, self.alive = ended & self.alive, self.alive & ~ended
        return tokens

    def stopped(self, stop: Stop) -> Tensor:
        """Whether the text of a row so far ends it (R,)."""
        counts, alive = self.count.tolist(), self.alive.tolist()
        found = [
            live and stop(row[:count])
            for row, count, live in zip(self.tokens.tolist(), counts, alive, strict=True)
        ]
        return torch.tensor(found, device=self.device)

    def finished(self) -> Iterator[tuple[int, Sampled]]:
        """The completions that the last token ended: for this alone a GPU is waited for."""
        ended = self.just_ended.nonzero().flatten().tolist()
        self.idle = sorted(self.idle + ended)
        for row in ended:
            count = int(self.count[row])
            tokens = self.tokens[row, :count].tolist()
            cut = count >= self.sampling.max_tokens and tokens[-1] not in self.sampling.ends
            if cut and self.sampling.stop is not None:
                cut = not self.sampling.stop(tokens)
            yield (
                self.numbers[row],
                Sampled(
                    tokens=tokens,
                    logps=self.logps[row, :count].tolist(),
                    finish="length" if cut else "stop",
                    support=None if self.support is None else as_bytes(self.support[row, :count]),
                ),
            )

    def select(self, decoder: PlainDecoder | CachedDecoder) -> Tensor:
        """Drop the finished rows; the places (R,) of those that go on."""
        rows = self.alive.nonzero().flatten()
        decoder.select(rows)
        self.rows, self.idle = len(rows), []
        self.numbers = [self.numbers[row] for row in rows.tolist()]
        self.alive, self.count = self.alive[rows], self.count[rows]
        self.tokens, self.logps = self.tokens[rows], self.logps[rows]
        self.uniform = self.uniform[rows]
        if self.support is not None:
            self.support = self.support[rows]
        if self.seen is not None:
            self.seen = self.seen[rows]
        return rows


def groups(prompts: Sequence[Tokens]) -> list[Group]:
    """Equal prompts together, long ones first: those that are read together are of like length."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, prompt in enumerate(prompts):
        found.setdefault(tuple(prompt), []).append(number)
    return sorted((Group(p, n) for p, n in found.items()), key=lambda group: -len(group.prompt))


def taken(waiting: deque[Group], places: int) -> list[Group]:
    """The groups from the front that fit into so many places."""
    chosen: list[Group] = []
    while waiting and len(waiting[0].numbers) <= places:
        chosen.append(waiting.popleft())
        places -= len(chosen[-1].numbers)
    return chosen
