"""Protocol of rollout engines, their sampling settings and their completions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Tokens = Sequence[int]
ROWS = 128  # completions that the native engine decodes at a time on a CPU


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling settings, with the meanings of `transformers.generate`.

    Attributes:
        max_tokens: largest length of a completion, in tokens.
        ends: token ids that end a completion; the completion includes the first of them.
        temperature: softmax temperature; 0 takes the most likely token.
        keeps_support: whether to record which tokens `top_k`, `top_p` and `min_p` left at each
            position.
        stop: function of the tokens so far; a completion ends as soon as it returns True.
        keywords: further keyword arguments that an engine passes on to the library it calls.
    """

    max_tokens: int
    ends: frozenset[int]
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float | None = None
    repetition_penalty: float = 1.0
    keeps_support: bool = False
    stop: Callable[[list[int]], bool] | None = None
    keywords: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, kw_only=True)
class SampledCompletion:
    """A sampled completion.

    Attributes:
        tokens: token ids, the ending token included.
        logps: log-probability of each token under the distribution it was drawn from, after
            temperature and truncation; of greedy tokens, under the model's own distribution.
        finish: "length" if the completion was cut at the largest length, else "stop".
        support: for each token, the tokens that truncation left (see `core.rollout.support`);
            None unless the settings keep them.
    """

    tokens: list[int]
    logps: list[float]
    finish: Literal["stop", "length"]
    support: list[bytes] | None = None


class Engine(Protocol):
    """Source of completions. Equal prompts form a group, whose prompt may be read once."""

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Sample one completion per prompt; yield (prompt index, completion) pairs as they finish.

        Args:
            prompts: token ids of each prompt.
            sampling: settings of all completions.
            seeds: for each prompt, the seed of its own stream of random numbers.
        """
        ...


def in_order(
    completions: Iterator[tuple[int, SampledCompletion]], count: int
) -> list[SampledCompletion]:
    """Return the completions of `count` prompts in the order of the prompts."""
    by_index = dict(completions)
    return [by_index[index] for index in range(count)]
