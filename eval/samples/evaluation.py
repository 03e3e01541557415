"""Sampling and grading of a model's answers to a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Protocol

from eval.errors import BadValue
from eval.samples.store import Sample, regrade
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import FEW_SHOT, PAL
from eval.sets.problem import Problem
from eval.stats.summary import Score, curve, score

__all__ = [
    "Completion",
    "Decoding",
    "Sample",
    "Sampler",
    "Score",
    "answer_problems",
    "curve",
    "run_benchmark",
    "score",
]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Settings of a sampler; temperature 0 is greedy and allows one sample only.

    `top_k` keeps the most likely tokens before `top_p` does, None keeps all tokens. `system` is the
    system prompt.
    """

    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    max_tokens: int = 1024
    seed: int = 0
    stop: tuple[str, ...] = ()  # a completion ends before the first of these texts
    chat: bool = True  # prompts are user turns, else plain text to be continued
    system: str | None = None

    def __post_init__(self) -> None:
        greedy, truncation = self.temperature == 0, (self.top_p, self.top_k)
        temperature_allowed = 0 <= self.temperature < inf
        mistakes = {
            f"samples={self.samples}, max_tokens={self.max_tokens}: expected >= 1": (
                min(self.samples, self.max_tokens) < 1
            ),
            f"temperature={self.temperature}, top_p={self.top_p}: expected >= 0 and (0, 1]": (
                not (temperature_allowed and 0 < self.top_p <= 1)
            ),
            f"top_k={self.top_k}: expected at least 1, or none to keep all tokens": (
                self.top_k is not None and self.top_k < 1
            ),
            f"top_p={self.top_p}, top_k={self.top_k}: at temperature 0 the most likely token is "
            "taken whatever they are: set a temperature above 0, or leave them out": (
                greedy and truncation != (1.0, None)
            ),
            "plain text has no system prompt: leave it out, or ask as a chat": (
                self.system is not None and not self.chat
            ),
            f"samples={self.samples} at temperature 0 are one sample repeated: "
            "set a temperature above 0 or samples=1": greedy and self.samples > 1,
        }
        for mistake in filter(mistakes.get, mistakes):
            raise BadValue(mistake)


@dataclass(frozen=True)
class Completion:
    """A completion of one prompt: its text, number of tokens, and whether a limit cut it.

    `stopped` is true if a stop text ended the completion and not the end token.
    """

    text: str
    tokens: int
    truncated: bool
    stopped: bool = False


class Sampler(Protocol):
    """Callable that completes user turns; the sampler applies the chat template itself."""

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> Sequence[Sequence[Completion]]:
        """Return `decoding.samples` completions for each prompt, in the order of the prompts.

        `starts` are beginnings of the answers, which completions continue and do not repeat.
        """
        ...


def run_benchmark(
    sampler: Sampler,
    benchmark: Benchmark,
    *,
    data: Path | None = None,
    limit: int | None = None,
    mode: str = "cot",
    decoding: Decoding,
) -> list[Sample]:
    """Return the graded samples of a benchmark's problems, or of a representative `limit`.

    Raises:
        MissingFile, DamagedFile, BadValue: see `Benchmark.load` and `answer_problems`.
    """
    problems = benchmark.load(data, limit)
    return answer_problems(sampler, benchmark, problems, mode=mode, decoding=decoding)


def answer_problems(
    sampler: Sampler,
    benchmark: Benchmark,
    problems: Sequence[Problem],
    *,
    mode: str = "cot",
    decoding: Decoding,
) -> list[Sample]:
    """Return the graded samples of these problems, ordered by problem, then by sample.

    Raises:
        BadValue: the sampler returned a wrong number of prompts or of samples.
    """
    mode_decoding = replace(decoding, stop=benchmark.stop(mode), chat=mode not in (FEW_SHOT, PAL))
    prompts = [benchmark.prompt(p, mode) for p in problems]
    begun = benchmark.beginning(mode)
    starts = {"starts": [begun] * len(prompts)} if begun else {}
    completions = sampler(prompts, mode_decoding, **starts)
    counts = [len(c) for c in completions]
    if counts != [decoding.samples] * len(problems):
        raise BadValue(
            f"the sampler returned {len(counts)} x {sorted(set(counts))} completions "
            f"for {len(problems)} prompts x {decoding.samples} samples of {benchmark.name}"
        )
    ungraded = [
        Sample(
            benchmark=benchmark.name,
            id=problem.id,
            sample=k,
            output=begun + completion.text,
            tokens=completion.tokens,
            truncated=completion.truncated,
            extracted=None,
            correct=None,
            rule="none",
            reason="not graded",
        )
        for problem, row in zip(problems, completions, strict=True)
        for k, completion in enumerate(row)
    ]
    return regrade(ungraded, problems, mode)
