"""Preference pairs of the pocket world: worked solutions and their revisions."""

from collections.abc import Sequence
from itertools import chain
from random import Random

from core.data.sources import Row, problem_rows
from eval.pocket.revisions import random_revision
from eval.pocket.suites import drafts


def revised_pairs(suites: Sequence[str], split: str, first: int | None, seed: int) -> list[Row]:
    """Return problems with their worked solution as `chosen` and a revision as `rejected`.

    The suites alternate. Problems without a revision are left out.

    Args:
        suites: names of the benchmarks.
        split: split of the benchmarks.
        first: number of problems of each benchmark that are tried; None tries all.
        seed: seed of the mistakes; the problems are the same for every seed.
    """
    rows: list[Row] = []
    parts = [
        zip(problem_rows(suite, split, None)[:first], drafts(suite, split)[:first], strict=True)
        for suite in suites
    ]
    for row, draft in chain.from_iterable(zip(*parts, strict=True)):
        rejected = random_revision(draft, Random(f"{seed} {draft.form}"))
        if rejected is not None:
            answers = {"chosen": draft.solution, "rejected": rejected}
            turns = {n: [{"role": "assistant", "content": text}] for n, text in answers.items()}
            rows.append({**row, **turns})
    return rows
