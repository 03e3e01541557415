"""Draws a fixed stratified sample of a test set; smaller samples are subsets of larger ones."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from eval.sets.problem import Problem


def stratified_sample(problems: Sequence[Problem], n: int, strata: Sequence[str]) -> list[Problem]:
    """Return `n` problems in their original order, each stratum in proportion to its size.

    The problems of a stratum get evenly spaced positions in [0, 1), in an order that depends on
    their questions alone and with an offset that depends on the stratum; the `n` lowest positions
    are drawn. The sample is therefore the same for any order of `problems`, and a smaller sample
    is a subset of a larger one. `strata` are names of attributes of `Problem`: problems with equal
    values form a stratum.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for index, problem in enumerate(problems):
        groups[str([getattr(problem, name) for name in strata])].append(index)
    positions: list[tuple[float, int]] = []
    for name, members in groups.items():
        ordered = sorted(
            members, key=lambda i: (hash_fraction(problems[i].question), problems[i].id)
        )
        offset = hash_fraction(name)
        positions += [((rank + offset) / len(members), i) for rank, i in enumerate(ordered)]
    return [problems[index] for index in sorted(index for _, index in sorted(positions)[:n])]


def hash_fraction(text: str) -> float:
    """Return a number in [0, 1] from the SHA-256 of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64
