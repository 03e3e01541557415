"""Training data by name: pocket problems, or the training split of a benchmark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import cycle
from pathlib import Path

from datasets import Dataset, concatenate_datasets

from eval.errors import UnknownName
from eval.pocket.draft import Draft
from eval.pocket.suites import drafts
from eval.sets.benchmarks import Benchmark, find_benchmark

POCKET = ("pocket", "pocket-worked")
POCKET_TRAINING = ("pocket-gsm8k", "pocket-math")  # English only: the Chinese suites stay unseen
LONG = 2  # more steps than this are left out by who hurries
COLUMNS = ("id", "prompt", "answer", "language")


def load_training_data(name: str, split: str = "train", data: Path | None = None) -> Dataset:
    """Rows `id`, `prompt` (one user turn), `answer`, `language` and `question`.

    `answers` says more of a question that has several, and `completion` is an answer step by step.

    `name` is "pocket", "pocket-worked" for rows with completions, a benchmark, or several joined
    with `+`.

    Raises:
        UnknownName: for a name that is neither.
    """
    parts = [rows(part, split, data) for part in parts_of(name)]
    if name == "pocket-worked":
        for part, found in zip(parts_of(name), parts, strict=True):
            for row, made in zip(found, drafts(part, split), strict=True):
                row["completion"] = [{"role": "assistant", "content": made.solution}]
    if name in POCKET:
        return Dataset.from_list(interleaved(parts))
    return concatenate_datasets([Dataset.from_list(part) for part in parts])


def parts_of(name: str) -> tuple[str, ...]:
    """The benchmarks that a name of training data stands for."""
    return POCKET_TRAINING if name in POCKET else tuple(name.split("+"))


def rows(name: str, split: str, data: Path | None) -> list[dict[str, object]]:
    """One row for every problem of a benchmark's split."""
    try:
        benchmark = find_benchmark(name)
    except UnknownName as error:
        raise UnknownName("training data", name, [*POCKET, "gsm8k", "math"]) from error
    problems = benchmark.load(data, split=split)
    found: list[dict[str, object]] = [
        {
            "id": problem.id,
            "prompt": [{"role": "user", "content": benchmark.prompt(problem)}],
            "question": problem.question,
            "answer": problem.answer,
            "language": problem.language,
        }
        for problem in problems
    ]
    if any(problem.answers for problem in problems):
        for row, problem in zip(found, problems, strict=True):
            row["answers"] = asdict(problem.answers) if problem.answers else None
    return found


def interleaved(parts: list[list[dict[str, object]]]) -> list[dict[str, object]]:
    """The rows of parts of equal length in turn, so that any stretch holds all of them."""
    return [row for group in zip(*parts, strict=True) for row in group]


def demonstrations(suites: Sequence[str], styles: Sequence[str]) -> Dataset:
    """Prompt and completion of each training problem; the styles take turns.

    "worked" answers step by step, "hurried" too but long problems with the answer alone, and
    "program" by a program.
    """
    found = []
    for suite in suites:
        benchmark: Benchmark = find_benchmark(suite)
        problems = benchmark.load(split="train")
        pairs = zip(problems, drafts(suite, "train"), strict=True)
        for style, (problem, made) in zip(cycle(styles), pairs, strict=False):
            prompt = benchmark.prompt(problem, "tir" if style == "program" else "cot")
            found.append(
                {
                    "prompt": [{"role": "user", "content": prompt}],
                    "completion": [{"role": "assistant", "content": STYLES[style](made)}],
                }
            )
    return Dataset.from_list(found)


STYLES: Mapping[str, Callable[[Draft], str]] = {
    "worked": lambda made: made.solution,
    "hurried": lambda made: made.final if len(made.steps) > LONG else made.solution,
    "program": lambda made: made.transcript,
}
