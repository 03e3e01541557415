"""Samplers of the eval stage: what they share, and a policy as one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, replace
from typing import Any, Generic, Self, TypeVar

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from core.rollout.chat import Asked, Turns, chat_text
from core.rollout.engine import Engine, Sampled, Sampling, in_order
from core.rollout.merged_adapters import inner
from core.rollout.native.native import NativeEngine
from core.rollout.samplers.journal import Journal
from core.rollout.seeds import seed_of
from core.rollout.stops import before_stop, end_tokens, stop_at
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding

logger = logging.get_logger(__name__)

CHUNK = 256  # completions that enter the journal together, and so are drawn together
DEVICE_CHUNK = 2048  # the same where hundreds are decoded at a time


Prompt = TypeVar("Prompt", list[int], Turns)  # as the journal and what draws know it
Drawn = TypeVar("Drawn")  # a completion as it enters the journal
Finished = TypeVar("Finished")  # a completion as an engine gives it


def unwatched(finished: int, of: int) -> None:
    """Nobody is told how far a sampler is."""


class ChunkedSampler(ABC, Generic[Prompt, Drawn]):
    """Samples completions of user turns.

    A draw depends on `Decoding.seed`, its prompt and its number among the prompt's samples alone.
    With a `journal` they are drawn in chunks: those in it are not drawn again, others enter it.
    They are where somebody is told how far it is, too, see `watched`.
    """

    def __init__(self, journal: Journal | None = None, chunk: int = CHUNK):
        self.journal = journal
        self.chunk = chunk
        self.watch = unwatched
        self.begun, self.of = 0, 0  # completions before those that are drawn now, and all

    def __call__(
        self, prompts: Sequence[Asked], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """Completions [prompt][sample]; prompts of like length are drawn together."""
        begun = starts or [""] * len(prompts)
        pairs = zip(prompts, begun, strict=True)
        chat, system = decoding.chat, decoding.system
        ids = [self.encode(prompt, start, chat=chat, system=system) for prompt, start in pairs]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        jobs = [(index, sample) for index in order for sample in range(decoding.samples)]
        found: list[list[Completion]] = [[] for _ in prompts]
        self.of = len(jobs)
        alone = self.journal is None and self.watch is unwatched
        size = max(1, self.of) if alone else self.chunk
        for start in range(0, self.of, size):
            self.begun = start
            self.watch(start, self.of)
            chunk = jobs[start : start + size]
            seeds = [seed_of(decoding.seed, sample, ids[index]) for index, sample in chunk]
            drawn = self.once([ids[index] for index, _ in chunk], decoding, seeds)
            for (index, _), one in zip(chunk, drawn, strict=True):
                found[index].append(self.completion(one, decoding.stop))
        self.watch(self.of, self.of)
        return found

    def journaled(self, journal: Journal) -> Self:
        """The same sampler with a journal."""
        other = copy(self)
        other.journal = journal
        return other

    def watched(self, watch: Callable[[int, int], None]) -> Self:
        """The same sampler, which tells how many completions are finished, and of how many."""
        other = copy(self)
        other.watch = watch
        return other

    def counted(self, found: Iterable[Finished]) -> Iterator[Finished]:
        """What is drawn, as it is finished, and told of."""
        for number, one in enumerate(found, 1):
            self.watch(self.begun + number, self.of)
            yield one

    @abstractmethod
    def encode(
        self, prompt: Asked, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> Prompt:
        """A user turn or conversation, after a system's, or plain text; and the answer's start."""

    @abstractmethod
    def prompt_tokens(self, prompt: str, *, chat: bool, system: str | None = None) -> int:
        """How many tokens `encode` makes of a prompt; 0 if unknown."""

    def once(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Drawn]:
        """What the journal holds of these prompts, or what is drawn now."""
        if self.journal is None:
            return self.draw(prompts, decoding, seeds)
        asked = {"prompts": prompts, **asdict(decoding)}
        return self.journal.once(asked, lambda: self.draw(prompts, decoding, seeds))

    @abstractmethod
    def draw(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Drawn]:
        """One completion for each prompt, as JSON can hold it."""

    @abstractmethod
    def completion(self, drawn: Drawn, stop: Sequence[str]) -> Completion:
        """The text of a completion up to its stop string, its length, and what ended it."""


class TokenSampler(ChunkedSampler[list[int], Drawn]):
    """A sampler whose prompts are written with the chat template of a tokenizer, as token ids."""

    def __init__(self, tokenizer: Any, journal: Journal | None = None, chunk: int = CHUNK):
        super().__init__(journal, chunk)
        self.tokenizer = tokenizer  # Any: a PreTrainedTokenizerBase, whose types are unions

    def encode(
        self, prompt: Asked, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> list[int]:
        """Token ids of `ChunkedSampler.encode`."""
        if not (chat or isinstance(prompt, str)):
            raise BadValue("a conversation is asked with a chat template: give its text, or one")
        text = chat_text(self.tokenizer, prompt, system) if chat else str(prompt)
        # The template writes its own special tokens; plain text gets those of its tokenizer.
        return self.tokenizer(text + start, add_special_tokens=not chat)["input_ids"]

    def prompt_tokens(self, prompt: str, *, chat: bool, system: str | None = None) -> int:
        """See `ChunkedSampler.prompt_tokens`."""
        return len(self.encode(prompt, chat=chat, system=system))


class LocalSampler(TokenSampler[list[int]]):
    """A sampler in this process: what is drawn are token ids, of which `ends` end an answer."""

    ends: frozenset[int]

    def sampling(self, decoding: Decoding) -> Sampling:
        """The settings of an engine, without stop strings."""
        return Sampling(
            max_tokens=decoding.max_tokens,
            ends=self.ends,
            temperature=decoding.temperature,
            top_k=decoding.top_k or 0,
            top_p=decoding.top_p,
        )

    def completion(self, drawn: list[int], stop: Sequence[str] = ()) -> Completion:
        """See `ChunkedSampler.completion`."""
        text = self.tokenizer.decode(drawn, skip_special_tokens=True)
        head = before_stop(text, stop)
        if head is not None:
            return Completion(head, len(drawn), truncated=False, stopped=True)
        return Completion(text, len(drawn), truncated=drawn[-1] not in self.ends)


class PolicySampler(LocalSampler):
    """Samples from a policy that is loaded here.

    Our engine draws `rows` completions at a time; None are as many as the free memory of a GPU
    holds. Where memory runs out, it draws the same with half as many.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        engine: Engine | None = None,
        journal: Journal | None = None,
        chunk: int = CHUNK,
        rows: int | None = None,
    ):
        super().__init__(tokenizer, journal, chunk)
        self.model = model
        self.engine = engine or NativeEngine(inner(model), rows)
        self.ends = frozenset(end_tokens(inner(model), tokenizer))

    def draw(
        self, prompts: list[list[int]], decoding: Decoding, seeds: list[int]
    ) -> list[list[int]]:
        """See `ChunkedSampler.draw`."""
        sampling = replace(self.sampling(decoding), stop=stop_at(self.tokenizer, decoding.stop))
        training = self.model.training
        self.model.eval()
        try:
            found = self.within_memory(prompts, sampling, seeds)
        finally:
            self.model.train(training)
        return [row.tokens for row in found]

    def within_memory(
        self, prompts: list[list[int]], sampling: Sampling, seeds: list[int]
    ) -> list[Sampled]:
        """One completion for each prompt, with fewer at a time after memory ran out."""
        while True:
            try:
                found = self.counted(self.engine.sample(prompts, sampling, seeds))
                return in_order(found, len(prompts))
            except torch.OutOfMemoryError:
                if not isinstance(self.engine, NativeEngine) or self.engine.rows == 1:
                    raise
            # After the exception, whose frames hold what did not fit.
            self.engine.rows //= 2
            self.engine.by_memory = False
            torch.cuda.empty_cache()
            logger.warning(f"out of memory: {self.engine.rows} completions at a time from now on")
