"""What every rollout engine takes and gives: prompts, sampling settings and seeds; tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How completions are drawn, with the meanings of `transformers.generate`.

    Temperature 0 takes the most likely token. A completion ends with its first token out of `ends`,
    as soon as `stop` holds for its tokens so far, or after `max_tokens`. `keeps_support` asks for
    the tokens that `top_k`, `top_p` and `min_p` left where each token was drawn. `keywords` are
    further ones that an engine passes on to what it calls.
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
    keywords: tuple[tuple[str, Any], ...] = ()  # Any: as the engine takes it


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One completion, its last token included.

    `logps` are the log-probabilities of its tokens under the distribution they were drawn from,
    that is after temperature and truncation; of greedy tokens under the model's own. `support` are
    the tokens that were left where each was drawn, see `core.rollout.support`, if asked for.
    """

    tokens: list[int]
    logps: list[float]
    finish: Literal["stop", "length"]
    support: list[bytes] | None = None


class Engine(Protocol):
    """Draws completions; a prompt that comes more than once is a group."""

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """The number of a prompt and its completion, as they are finished.

        `seeds` has one for each prompt, the beginning of its own stream of random numbers.
        """
        ...


def in_order(found: Iterator[tuple[int, Sampled]], count: int) -> list[Sampled]:
    """The completions of `count` prompts in the prompts' order."""
    rows = dict(found)
    return [rows[number] for number in range(count)]
