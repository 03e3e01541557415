"""The task `canvas`: texts of a Markov chain on a few symbols, whose bigrams are known."""

from functools import cache
from random import Random

SYMBOLS = "abcdefgh"
LENGTH = 16  # symbols of a text
LIKELY, SECOND = 0.7, 0.2  # probabilities of the two successors that each symbol has beside chance


@cache
def chain(seed: int) -> tuple[tuple[float, ...], ...]:
    """Return the probability of each next symbol after each symbol, drawn by the seed.

    A symbol is followed by one symbol with `LIKELY`, by another with `SECOND`, and by any with the
    rest. No two symbols share either successor, so that all symbols are equally frequent.
    """
    random, count = Random(f"canvas {seed}"), len(SYMBOLS)
    order, shift = [*range(count)], random.randrange(1, count)
    random.shuffle(order)
    rest = (1 - LIKELY - SECOND) / count
    rows = [[rest] * count for _ in order]
    for place, row in enumerate(rows):
        row[order[place]] += LIKELY
        row[order[(place + shift) % count]] += SECOND
    return tuple(map(tuple, rows))


def bigram_chances(seed: int) -> dict[str, float]:
    """Return the probability of each pair of neighbouring symbols in texts of a seed."""
    return {
        first + second: chance / len(SYMBOLS)
        for first, row in zip(SYMBOLS, chain(seed), strict=True)
        for second, chance in zip(SYMBOLS, row, strict=True)
    }


def texts(split: str, count: int, seed: int) -> list[str]:
    """Return texts of the chain of a seed, whose first symbol is any with equal probability."""
    random = Random(f"canvas {split} {seed}")
    rows = dict(zip(SYMBOLS, chain(seed), strict=True))
    drawn = list[str]()
    for _ in range(count):
        text = random.choice(SYMBOLS)
        while len(text) < LENGTH:
            text += random.choices(SYMBOLS, rows[text[-1]])[0]
        drawn.append(text)
    return drawn
