"""What the task files of this folder name: problems with our prompts, and our grader's verdict."""

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
    """A task whose prompts are user turns; without the chat template they would score next to 0."""

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config={name: v for name, v in config.items() if name != "class"})

    def build_all_requests(self, *, apply_chat_template: bool = False, **settings: Any) -> None:
        """See `Task.build_all_requests`.

        Raises:
            BadValue: the prompts are not to be written with a chat template.
        """
        if not apply_chat_template:
            raise BadValue(
                f"{self.config.task}: its prompts are turns of a chat: add --apply_chat_template, "
                "with a model whose tokenizer has a chat template"
            )
        super().build_all_requests(apply_chat_template=apply_chat_template, **settings)


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
            "exact_form": p.exact_form,
            "language": p.language,
        }
        for p in found.load(Path(data) if data else None)
    ]
    return {"test": Dataset.from_list(rows)}


def verdict(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Right or not; and, counted as wrong, whether there was no answer or no verdict."""
    answers = Answers(tuple(doc["answers"]), doc["counts"], doc["exact_form"])
    found = grade(results[0], answers, doc["language"])
    return {
        "acc": float(found.correct is True),
        "unanswered": float(found.extracted is None),
        "undecided": float(found.correct is None),
    }
