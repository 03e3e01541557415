"""Exact properties of votes, by enumeration of all outcomes of a problem's samples."""

from collections.abc import Iterator

from eval.stats.estimates import Votes, maj_at_k, pass_at_k


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield every way to write `total` as a sum of falling positive numbers, at most `largest`."""
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        yield from ((part, *rest) for rest in partitions(total - part, part))


def outcomes(n: int) -> Iterator[Votes]:
    """Yield every outcome of n samples: counts of right ones, of equal wrong ones, and of blanks.

    The right answer is listed first, also if no sample has it.
    """
    for right in range(n + 1):
        for blank in range(n + 1 - right):
            for wrong in partitions(n - right - blank):
                yield Votes((right, *wrong), (True, *[False] * len(wrong)), blank)


def excess(n: int) -> list[float]:
    """Return the largest Maj@m - Pass@m over all m, for every outcome of n samples."""
    return [
        max(maj_at_k(votes, m) - pass_at_k(n, votes.counts[0], m) for m in range(1, n + 1))
        for votes in outcomes(n)
    ]
