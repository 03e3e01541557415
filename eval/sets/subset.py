"""A part of a test set that stands for the whole: the same for everybody, and nested by size."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from eval.sets.problem import Problem


def stratified(problems: Sequence[Problem], n: int, strata: Sequence[str]) -> list[Problem]:
    """`n` problems, of each stratum its share up to one, in the order of the set.

    `strata` are attributes of a problem. A stratum's problems stand at even distances from 0 to 1,
    from a place of its own on and in an order that only their questions decide; the first `n` of
    all are taken. So a smaller part is a part of a larger one, whatever order the file has.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for index, problem in enumerate(problems):
        groups[str([getattr(problem, name) for name in strata])].append(index)
    places: list[tuple[float, int]] = []
    for name, members in groups.items():
        ordered = sorted(members, key=lambda i: (place(problems[i].question), problems[i].id))
        start = place(name)
        places += [((rank + start) / len(members), i) for rank, i in enumerate(ordered)]
    return [problems[index] for index in sorted(index for _, index in sorted(places)[:n])]


def place(text: str) -> float:
    """A number from 0 to 1 that the text alone decides."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64
