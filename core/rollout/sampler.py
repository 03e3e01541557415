"""A policy as a sampler for the eval stage."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from transformers import PreTrainedModel

from core.rollout.adapters import inner
from core.rollout.engine import Engine, Sampling, in_order
from core.rollout.journal import Journal
from core.rollout.native import NativeEngine
from core.rollout.seeds import seed_of
from core.rollout.stops import before_stop, stop_at
from eval.scoring import Completion, Decoding

CHUNK = 1024  # completions that are decoded together, and enter the journal together


class PolicySampler:
    """Samples completions of user turns from a policy.

    A draw depends on `Decoding.seed`, its prompt and its number among the prompt's samples alone.
    With a `journal`, chunks that are in it are not decoded again, and the others enter it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        engine: Engine | None = None,
        journal: Journal | None = None,
        chunk: int = CHUNK,
    ):
        self.model = model
        self.tokenizer = tokenizer  # Any: a PreTrainedTokenizerBase, whose types are unions
        self.engine = engine or NativeEngine(inner(model))
        self.journal = journal
        self.chunk = chunk
        self.eos = frozenset({int(tokenizer.eos_token_id)})

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """Completions [prompt][sample]; prompts of like length are decoded together."""
        begun = starts or [""] * len(prompts)
        pairs = zip(prompts, begun, strict=True)
        ids = [self.encode(prompt, start, chat=decoding.chat) for prompt, start in pairs]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        jobs = [(index, sample) for index in order for sample in range(decoding.samples)]
        found: list[list[Completion]] = [[] for _ in prompts]
        training = self.model.training
        self.model.eval()
        for start in range(0, len(jobs), self.chunk):
            chunk = jobs[start : start + self.chunk]
            seeds = [seed_of(decoding.seed, sample, ids[index]) for index, sample in chunk]
            drawn = self.complete([ids[index] for index, _ in chunk], decoding, seeds)
            for (index, _), tokens in zip(chunk, drawn, strict=True):
                found[index].append(self.completion(tokens, decoding.stop))
        self.model.train(training)
        return found

    def journaled(self, journal: Journal) -> "PolicySampler":
        """The same sampler with a journal."""
        return PolicySampler(self.model, self.tokenizer, self.engine, journal, self.chunk)

    def encode(self, prompt: str, start: str = "", *, chat: bool = True) -> list[int]:
        """Token ids of a user turn, or of plain text, and of the answer's start."""
        text = prompt
        if chat:
            text = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
        # The template writes its own special tokens; plain text gets those of its tokenizer.
        return self.tokenizer(text + start, add_special_tokens=not chat)["input_ids"]

    def complete(
        self, prompt_ids: list[list[int]], decoding: Decoding, seeds: list[int]
    ) -> list[list[int]]:
        """Token ids of one completion for each prompt."""

        def draw() -> list[list[int]]:
            sampling = Sampling(
                max_tokens=decoding.max_tokens,
                ends=self.eos,
                temperature=decoding.temperature,
                top_p=decoding.top_p,
                stop=stop_at(self.tokenizer, decoding.stop),
            )
            found = self.engine.sample(prompt_ids, sampling, seeds)
            return [row.tokens for row in in_order(found, len(prompt_ids))]

        if self.journal is None:
            return draw()
        return self.journal.once({"prompts": prompt_ids, **asdict(decoding)}, draw)

    def completion(self, tokens: list[int], stop: Sequence[str] = ()) -> Completion:
        """The text of a completion up to its stop string, its length, and what ended it."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        head = before_stop(text, stop)
        if head is not None:
            return Completion(head, len(tokens), truncated=False, stopped=True)
        return Completion(text, len(tokens), truncated=tokens[-1] not in self.eos)
