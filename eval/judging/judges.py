"""Judges: chances that the first of two answers to the same prompt is preferred.

A judge is called with keywords: lists of prompts, of first and second answers, and of further
columns of the data. It returns one chance from 0 to 1 for each pair, the same for the same inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import exp
from typing import ClassVar

from eval.errors import BadValue
from eval.judging.known_rewards import known_rewards

Judge = Callable[..., Sequence[float]]
Texts = Sequence[str]


def preference(first: float, second: float) -> float:
    """Return 1 if the first number is larger, 0 if the second is, 1/2 if they are equal."""
    return 0.5 if first == second else float(first > second)


@dataclass(frozen=True)
class Truth:
    """Prefers the answer with the higher reward of `known_rewards`; reads the column `answer`."""

    required_columns: ClassVar[tuple[str, ...]] = ("answer",)

    def __call__(
        self, *, prompts: Texts, first: Texts, second: Texts, answer: Texts, **columns: object
    ) -> list[float]:
        """Return 1, 1/2 or 0 for each pair."""
        rewards = [known_rewards(prompts, texts, answer, columns) for texts in (first, second)]
        return [preference(a, b) for a, b in zip(*rewards, strict=True)]


@dataclass(frozen=True)
class BradleyTerry:
    """Prefers the first answer with chance sigma(scale (r_1 - r_2)) of `known_rewards` r.

    Attributes:
        scale: Factor of the difference of the rewards.
        labels: Number of labels that are drawn with that chance, whose mean is returned; None
            returns the chance itself. Labels are a function of `seed` and the texts.
        seed: Seed of the labels.
    """

    scale: float = 4.0
    labels: int | None = 1
    seed: int = 0
    required_columns: ClassVar[tuple[str, ...]] = Truth.required_columns

    def __post_init__(self):
        if not self.scale > 0 or (self.labels is not None and self.labels < 1):
            raise BadValue(f"{self}: expected scale above 0, and labels of at least 1 or None")

    def __call__(
        self, *, prompts: Texts, first: Texts, second: Texts, answer: Texts, **columns: object
    ) -> list[float]:
        """Return the chance of each first answer, or the share of drawn labels that prefer it."""
        rewards = [known_rewards(prompts, texts, answer, columns) for texts in (first, second)]
        chances = [1 / (1 + exp(self.scale * (b - a))) for a, b in zip(*rewards, strict=True)]
        if self.labels is None:
            return chances
        texts = zip(prompts, first, second, strict=True)
        return [self.label_share(p, *pair) for p, pair in zip(chances, texts, strict=True)]

    def label_share(self, chance: float, prompt: str, first: str, second: str) -> float:
        """Return the share of labels that prefer the first answer; 1 minus it if swapped."""
        if first == second:
            return 0.5
        if second < first:
            return 1 - self.label_share(1 - chance, prompt, second, first)
        count = self.labels or 1
        numbers = [uniform(self.seed, place, prompt, first, second) for place in range(count)]
        return sum(number < chance for number in numbers) / count


def uniform(*parts: object) -> float:
    """Return a number in [0, 1) that is a function of the parts."""
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:7]) / 2**56


@dataclass(frozen=True)
class Brief:
    """Prefers the answer with fewer characters, without white space at its ends."""

    def __call__(self, *, first: Texts, second: Texts, **columns: object) -> list[float]:
        """Return 1, 1/2 or 0 for each pair."""
        del columns
        pairs = zip(first, second, strict=True)
        return [preference(len(b.strip()), len(a.strip())) for a, b in pairs]


@dataclass(frozen=True)
class InOrder:
    """Asks a judge, and another one of the pairs that the first finds even.

    Attributes:
        first: The judge that decides.
        then: The judge of even pairs.
    """

    first: Judge
    then: Judge

    @property
    def required_columns(self) -> tuple[str, ...]:
        """Columns that the judges read."""
        columns = [getattr(judge, "required_columns", ()) for judge in (self.first, self.then)]
        return tuple(dict.fromkeys(name for names in columns for name in names))

    def __call__(self, **columns: Texts) -> list[float]:
        """Return the chance of each pair that the deciding judge gives."""
        chances = zip(self.first(**columns), self.then(**columns), strict=True)
        return [then if first == 0.5 else first for first, then in chances]


# Chances of the kinds of the rows to win against those of the columns; arXiv 2312.00886 has such
# a game: each kind beats another one and loses to the third.
CYCLE = ((0.5, 0.9, 0.2), (0.1, 0.5, 0.8), (0.8, 0.2, 0.5))


@dataclass(frozen=True)
class Cyclic:
    """Prefers by the kinds of the answers, none of which is best.

    The kind of an answer is the code of its last character, without white space, modulo 3; that of
    an empty answer is 0. Answers of different prompts are compared by the same `CYCLE`.
    """

    def __call__(self, *, first: Texts, second: Texts, **columns: object) -> list[float]:
        """Return the entry of `CYCLE` for each pair."""
        del columns
        return [CYCLE[kind(a)][kind(b)] for a, b in zip(first, second, strict=True)]


def kind(text: str) -> int:
    """Return the kind of an answer, 0 to 2."""
    stripped = text.strip()
    return ord(stripped[-1]) % len(CYCLE) if stripped else 0


JUDGES: Mapping[str, Judge] = {
    "truth": Truth(),
    "bradley-terry": BradleyTerry(),
    "brief": Brief(),
    "cyclic": Cyclic(),
}
