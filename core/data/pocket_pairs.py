"""Preference pairs of the pocket world: worked solutions and their revisions."""

from collections.abc import Callable, Sequence
from random import Random

from core.data.sources import Row, problem_rows
from eval.pocket.draft import Draft
from eval.pocket.suites import drafts

Pairing = Callable[[Draft, Random], tuple[str, str] | None]


def pocket_pairs(
    suites: Sequence[str], pairing: Pairing, split: str, first: int | None, seed: int
) -> list[Row]:
    """Return problems with a chosen and a rejected answer, alternating between the suites.

    Problems without a pair are left out.

    Args:
        suites: names of the benchmarks.
        pairing: returns the chosen and the rejected answer of a problem; None if it has no pair.
        split: split of the benchmarks.
        first: number of problems of each benchmark that are tried; None tries all.
        seed: seed of the random choices.
    """
    rows: list[Row] = []
    parts = [
        zip(problem_rows(suite, split, None)[:first], drafts(suite, split)[:first], strict=True)
        for suite in suites
    ]
    for row, draft in (pair for group in zip(*parts, strict=True) for pair in group):
        answers = pairing(draft, Random(f"{seed} {draft.form}"))
        if answers is not None:
            chosen, rejected = ([{"role": "assistant", "content": text}] for text in answers)
            rows.append({**row, "chosen": chosen, "rejected": rejected})
    return rows
