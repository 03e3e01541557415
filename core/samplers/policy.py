"""Samplers of the evaluation stage: their base classes, and the sampler of a loaded policy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, replace
from typing import Any, Generic, Self, TypeAlias, TypeVar

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.rollout.chat import ChatPrompt, Messages, chat_text
from core.rollout.engine import Engine, SampledCompletion, Sampling, in_order
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.native.native import NativeEngine
from core.rollout.seeds import seed_of
from core.rollout.stops import before_stop, end_tokens, stop_function
from core.samplers.journal import Journal
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding

logger = logging.get_logger(__name__)

CHUNK = 256  # completions that are drawn together and enter the journal together
DEVICE_CHUNK = 2048  # the chunk where hundreds of completions are decoded at a time


Prompt = TypeVar("Prompt", list[int], Messages)  # an encoded prompt
Drawn = TypeVar("Drawn")  # a completion as the journal stores it
Finished = TypeVar("Finished")  # a completion as an engine gives it


def ignore_progress(finished: int, total: int) -> None:
    """Ignore the progress of a sampler."""


class ChunkedSampler(ABC, Generic[Prompt, Drawn]):
    """Base of the samplers of completions.

    A completion depends on `Decoding.seed`, its prompt and its index among the samples of the
    prompt alone. With a `journal`, completions are drawn in chunks; those in the journal are read
    from it, new ones are added to it. Progress, see `with_progress`, is reported per chunk and per
    completion.
    """

    def __init__(self, journal: Journal | None = None, chunk: int = CHUNK):
        self.journal = journal
        self.chunk = chunk
        self.watch = ignore_progress
        self.finished, self.total = 0, 0  # completions before the current chunk, and all

    def __call__(
        self, prompts: Sequence[ChatPrompt], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """Return completions [prompt][sample]. Prompts of similar length are drawn together."""
        pairs = zip(prompts, starts or [""] * len(prompts), strict=True)
        chat, system = decoding.chat, decoding.system
        ids = [self.encode(prompt, start, chat=chat, system=system) for prompt, start in pairs]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        jobs = [(index, sample) for index in order for sample in range(decoding.samples)]
        completions: list[list[Completion]] = [[] for _ in prompts]
        for chunk in self.chunks(jobs):
            seeds = [seed_of(decoding.seed, sample, ids[index]) for index, sample in chunk]
            raw_completions = self.draw_journaled(
                [ids[index] for index, _ in chunk], decoding, seeds
            )
            for (index, _), raw in zip(chunk, raw_completions, strict=True):
                completions[index].append(self.completion(raw, decoding.stop))
        return completions

    def chunks(self, jobs: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        """Yield the jobs in chunks and report progress; one chunk if nothing needs several."""
        self.total = len(jobs)
        one_chunk = self.journal is None and self.watch is ignore_progress
        size = max(1, self.total) if one_chunk else self.chunk
        for start in range(0, self.total, size):
            self.finished = start
            self.watch(start, self.total)
            yield jobs[start : start + size]
        self.watch(self.total, self.total)

    def with_journal(self, journal: Journal) -> Self:
        """Return a copy of this sampler that uses a journal."""
        sampler = copy(self)
        sampler.journal = journal
        return sampler

    def with_progress(self, watch: Callable[[int, int], None]) -> Self:
        """Return a copy of this sampler that calls `watch(finished, total)` as it draws."""
        sampler = copy(self)
        sampler.watch = watch
        return sampler

    def report_progress(self, finished: Iterable[Finished]) -> Iterator[Finished]:
        """Yield completions as they finish, reporting the progress of each."""
        for count, completion in enumerate(finished, 1):
            self.watch(self.finished + count, self.total)
            yield completion

    @abstractmethod
    def encode(
        self, prompt: ChatPrompt, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> Prompt:
        """Encode a user message or conversation, or plain text, and the start of the answer.

        Args:
            prompt: a user message, a conversation, or with `chat=False` plain text.
            start: beginning of the answer, appended to the prompt.
            chat: whether to apply the chat template.
            system: system message before the prompt.
        """

    @abstractmethod
    def prompt_tokens(self, prompt: str, *, chat: bool, system: str | None = None) -> int:
        """Return the number of tokens of an encoded prompt; 0 if it is unknown."""

    def draw_journaled(
        self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]
    ) -> list[Drawn]:
        """Return the completions of these prompts, from the journal or newly drawn."""
        if self.journal is None:
            return self.draw(prompts, decoding, seeds)
        request = {"prompts": prompts, **asdict(decoding)}
        return self.journal.get_or_compute(request, lambda: self.draw(prompts, decoding, seeds))

    @abstractmethod
    def draw(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Drawn]:
        """Return one completion per prompt, in a form that JSON can hold."""

    @abstractmethod
    def completion(self, raw: Drawn, stop: Sequence[str]) -> Completion:
        """Convert a drawn completion to its text before a stop string, its length and its end."""


AnySampler: TypeAlias = ChunkedSampler[Any, Any]  # Any: requests and answers of any API


class TokenSampler(ChunkedSampler[list[int], Drawn]):
    """Base of samplers that apply a tokenizer's chat template and send token ids."""

    def __init__(self, tokenizer: Tokenizer, journal: Journal | None = None, chunk: int = CHUNK):
        super().__init__(journal, chunk)
        self.tokenizer = tokenizer

    def encode(
        self, prompt: ChatPrompt, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> list[int]:
        """Return the token ids of a prompt; see `ChunkedSampler.encode`.

        Raises:
            BadValue: the prompt is a conversation, and `chat` is False.
        """
        if not (chat or isinstance(prompt, str)):
            raise BadValue("a conversation needs a chat template: give one, or plain text")
        text = chat_text(self.tokenizer, prompt, system) if chat else str(prompt)
        # The template writes its own special tokens; plain text gets those of its tokenizer.
        return self.tokenizer(text + start, add_special_tokens=not chat)["input_ids"]

    def prompt_tokens(self, prompt: str, *, chat: bool, system: str | None = None) -> int:
        """See `ChunkedSampler.prompt_tokens`."""
        return len(self.encode(prompt, chat=chat, system=system))


class LocalSampler(TokenSampler[list[int]]):
    """Base of samplers in this process, which draw token ids; `ends` are the end tokens."""

    ends: frozenset[int]

    def sampling(self, decoding: Decoding) -> Sampling:
        """Return the engine's settings for this decoding, without stop strings."""
        return Sampling(
            max_tokens=decoding.max_tokens,
            ends=self.ends,
            temperature=decoding.temperature,
            top_k=decoding.top_k or 0,
            top_p=decoding.top_p,
        )

    def completion(self, raw: list[int], stop: Sequence[str] = ()) -> Completion:
        """See `ChunkedSampler.completion`."""
        text = self.tokenizer.decode(raw, skip_special_tokens=True)
        head = before_stop(text, stop)
        if head is not None:
            return Completion(head, len(raw), truncated=False, stopped=True)
        return Completion(text, len(raw), truncated=raw[-1] not in self.ends)


class PolicySampler(LocalSampler):
    """Sampler with a model that is loaded in this process.

    Args:
        model: the policy.
        tokenizer: its tokenizer.
        engine: the rollout engine; by default a `NativeEngine`.
        journal: see `ChunkedSampler`.
        chunk: number of completions that are drawn together if there is a journal.
        rows: number of completions decoded at a time; None takes as many as fit in GPU memory.
            When memory runs out, half as many are decoded at a time.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Tokenizer,
        engine: Engine | None = None,
        journal: Journal | None = None,
        chunk: int = CHUNK,
        rows: int | None = None,
    ):
        super().__init__(tokenizer, journal, chunk)
        self.model = model
        self.engine = engine or NativeEngine(unwrap_peft(model), rows)
        self.ends = frozenset(end_tokens(unwrap_peft(model), tokenizer))

    def draw(
        self, prompts: list[list[int]], decoding: Decoding, seeds: list[int]
    ) -> list[list[int]]:
        """See `ChunkedSampler.draw`."""
        sampling = replace(
            self.sampling(decoding), stop=stop_function(self.tokenizer, decoding.stop)
        )
        training = self.model.training
        self.model.eval()
        try:
            completions = self.sample_within_memory(prompts, sampling, seeds)
        finally:
            self.model.train(training)
        return [row.tokens for row in completions]

    def sample_within_memory(
        self, prompts: list[list[int]], sampling: Sampling, seeds: list[int]
    ) -> list[SampledCompletion]:
        """Return one completion per prompt; halve the engine's rows when memory runs out."""
        while True:
            try:
                completions = self.report_progress(self.engine.sample(prompts, sampling, seeds))
                return in_order(completions, len(prompts))
            except torch.OutOfMemoryError:
                if not isinstance(self.engine, NativeEngine) or self.engine.rows == 1:
                    raise
            # Outside of the handler: the frames of the exception hold the memory that ran out.
            self.engine.rows //= 2
            self.engine.by_memory = False
            torch.cuda.empty_cache()
            logger.warning(f"out of memory: {self.engine.rows} completions at a time from now on")
