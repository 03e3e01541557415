"""Rows of data of the nano worlds: demonstrations, graded pairs, random pairs, and texts."""

from collections.abc import Callable, Mapping

from core.data.pair_columns import GRADE, MARGIN
from core.data.sources import Row
from eval.nano.canvas import texts
from eval.nano.graded_pairs import GradedPair
from eval.nano.random_tables import pair_answers, pair_questions
from eval.nano.splits import demonstrations


def demonstration_rows(suite: str, kind: str, seed: int) -> list[Row]:
    """Return demonstrations of a nano task as prompts with completions."""
    return [
        {"prompt": question, "completion": answer}
        for question, answer in demonstrations(suite, kind, seed)
    ]


def graded_rows(
    draw: Callable[[int], list[GradedPair]], margins: Mapping[int, float] | None, seed: int
) -> list[Row]:
    """Return drawn pairs as rows with a grade, and with the margin of the grade."""
    return [
        {
            "prompt": pair.question,
            "chosen": pair.chosen,
            "rejected": pair.rejected,
            GRADE: pair.grade,
            **({} if margins is None else {MARGIN: margins[pair.grade]}),
        }
        for pair in draw(seed)
    ]


def pair_rows(table: str, seed: int) -> list[Row]:
    """Return the pairs of a table as prompts with completions."""
    pairs = zip(pair_questions(table, seed), pair_answers(table, seed), strict=True)
    return [{"prompt": question, "completion": answer} for question, answer in pairs]


def text_rows(split: str, count: int, seed: int) -> list[Row]:
    """Return texts of the task `canvas`."""
    return [{"text": text} for text in texts(split, count, seed)]
