"""What the task files of this folder name: problems with our prompts, and our grader's verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.benchmarks import find_benchmark
from eval.grading import grade
from eval.problem import Answers

if TYPE_CHECKING:
    from datasets import Dataset


def dataset(benchmark: str, data: str | None = None, **_: object) -> "dict[str, Dataset]":
    """The test problems of a benchmark, each with the user turn that asks it.

    `data` is a folder of benchmarks (`--metadata data=DIR`), else REPRO_DATA, else the hub; lm-eval
    hands over everything else that it knows of the task and of the model.
    """
    from datasets import Dataset  # lm-eval has imported it when it calls this

    found = find_benchmark(benchmark)
    rows = [
        {
            "id": p.id,
            "prompt": found.prompt(p),
            "answer": p.answer,
            "answers": list(p.reference.texts),
            "counts": p.reference.counts,
            "language": p.language,
        }
        for p in found.load(Path(data) if data else None)
    ]
    return {"test": Dataset.from_list(rows)}


def verdict(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Right or not; and, counted as wrong, whether there was no answer or no verdict."""
    answers = Answers(tuple(doc["answers"]), doc["counts"])
    found = grade(results[0], answers, doc["language"])
    return {
        "acc": float(found.correct is True),
        "unanswered": float(found.extracted is None),
        "undecided": float(found.correct is None),
    }
