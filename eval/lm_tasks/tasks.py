"""Functions named in the task files of this folder: problems with our prompts, and our grader."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval.api.task import ConfigurableTask

from eval.errors import BadValue
from eval.grading import grade
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Answers

if TYPE_CHECKING:
    from datasets import Dataset


class ChatTask(ConfigurableTask):
    """A task whose prompts are user turns and therefore need the model's chat template."""

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config={name: v for name, v in config.items() if name != "class"})

    def build_all_requests(self, *, apply_chat_template: bool = False, **settings: Any) -> None:
        """See `Task.build_all_requests`.

        Raises:
            BadValue: `apply_chat_template` is false.
        """
        if not apply_chat_template:
            raise BadValue(
                f"{self.config.task}: its prompts are turns of a chat: add --apply_chat_template, "
                "with a model whose tokenizer has a chat template"
            )
        super().build_all_requests(apply_chat_template=apply_chat_template, **settings)


def dataset(benchmark: str, data: str | None = None, **_: object) -> "dict[str, Dataset]":
    """Return the test problems of a benchmark, each with its prompt as the user turn.

    Args:
        benchmark: The name of the benchmark.
        data: A folder of benchmarks (`--metadata data=DIR`); without it REPRO_DATA, else the hub.
        _: Other metadata of the task and the model that lm-eval passes.
    """
    from datasets import Dataset  # lm-eval has imported it when it calls this

    task_set = find_benchmark(benchmark)
    rows = [
        {
            "id": p.id,
            "prompt": task_set.prompt(p),
            "answer": p.answer,
            "answers": list(p.reference.texts),
            "counts": p.reference.counts,
            "exact_form": p.exact_form,
            "language": p.language,
        }
        for p in task_set.load(Path(data) if data else None)
    ]
    return {"test": Dataset.from_list(rows)}


def verdict(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Grade the first result; `unanswered` and `undecided` results count as incorrect in `acc`."""
    answers = Answers(tuple(doc["answers"]), doc["counts"], doc["exact_form"])
    grade_of_answer = grade(results[0], answers, doc["language"])
    return {
        "acc": float(grade_of_answer.correct is True),
        "unanswered": float(grade_of_answer.extracted is None),
        "undecided": float(grade_of_answer.correct is None),
    }
