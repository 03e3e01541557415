"""Runs tasks of lm-eval with our sampler and keeps what came out as a record."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from core.lm_eval.model import ReproLM
from core.models.load import locate
from core.records.files import folder_files
from core.records.places import check_writable, own_results
from core.records.record import Record, new_record, write_record
from core.settings.canonical import digest_of
from core.stages.loading import Loading
from eval.errors import BadValue, MissingFile, UnknownName
from eval.stats.estimates import proportion

OURS = str(files("eval.lm_tasks"))
UNLOADABLE = (OSError, ValueError, AssertionError, ImportError, KeyError)  # as seen in its tasks


@dataclass(frozen=True, kw_only=True)
class TaskScore:
    """One number of a task, as lm-eval computes it, with its interval and its size.

    A mean of zeros and ones has the interval of a proportion, else 1.96 standard errors of lm-eval;
    None where it gives none. `limited` when the documents are not all of the task's.
    """

    task: str
    metric: str
    filter: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    limited: bool
    fewshot: int


class Tasks(TaskManager):
    """lm-eval's index of tasks, ours among them; loading gives errors that say what to do."""

    def load(self, task_list: Any) -> Any:  # Any: lists of four kinds
        """The tasks of these names.

        Raises:
            MissingFile: a data set cannot be had.
            BadValue: a task cannot run here.
        """
        try:
            loaded = super().load(task_list)
        except UNLOADABLE as error:
            kind = MissingFile if isinstance(error, OSError) else BadValue
            reason = " ".join(str(error).split())
            raise kind(f"lm-eval cannot load {', '.join(task_list)}: {reason:.300}") from error
        for name, task in loaded["tasks"].items():
            if getattr(task, "UNSAFE_CODE", False) or getattr(task, "MULTIMODAL", False):
                raise BadValue(f"{name} runs model-written code or needs images: not supported")
        return loaded


@cache
def all_tasks(data: Path | None) -> Tasks:
    """Every task; reading lm-eval's thousands of files takes seconds."""
    return Tasks(include_path=OURS, metadata=hints(data))


def hints(data: Path | None) -> dict[str, Any]:
    """What lm-eval passes on to our tasks: the folder of benchmarks, if one is given."""
    return {"data": str(data)} if data else {}


def find_tasks(names: Sequence[str], data: Path | None = None) -> Tasks:
    """An index that holds these tasks, groups or tags; a name may also be a task file.

    Raises:
        UnknownName: with the nearest names.
    """
    ours = Tasks(include_path=OURS, include_defaults=False, metadata=hints(data))
    wanted = [name for name in names if not (name.endswith(".yaml") and Path(name).is_file())]
    if all(name in ours.all_tasks for name in wanted):
        return ours
    known = all_tasks(data)
    for name in wanted:
        if name not in known.all_tasks:
            raise UnknownName("lm-eval task", name, known.all_tasks, "lm_eval ls tasks")
    return known


def score_tasks(
    model: str,
    names: Sequence[str],
    *,
    data: Path | None,
    limit: int | None,
    seed: int,
    loading: Loading | None = None,
) -> list[TaskScore]:
    """Scores of a model on lm-eval's tasks, also stored as a record under `runs/results/lm-eval/`.

    A tokenizer's chat template is used where there is one, as on our own benchmarks.

    Raises:
        UnknownName, MissingFile, BadValue: a task that does not exist or cannot run here.
    """
    check_writable(own_results() / "lm-eval")
    manager = find_tasks(names, data)
    how = loading or Loading()
    lm = ReproLM(model, seed=seed, dtype=how.dtype, device=how.device, batch_size=how.batch_size)
    template = lm.tokenizer.chat_template
    run: Any = simple_evaluate  # Any: a decorator hides its type
    results = run(
        model=lm,
        tasks=list(names),
        task_manager=manager,
        limit=limit,
        apply_chat_template=template is not None,
        torch_random_seed=seed,
    )
    scores = list(rows_of(results))
    write_record(record_of(model, lm, names, results, scores, limit=limit, seed=seed))
    return scores


def rows_of(results: Any) -> Iterator[TaskScore]:
    """Every metric of every task and group."""
    for task, found in {**results["results"], **results.get("groups", {})}.items():
        sizes = results["n-samples"].get(task, {})
        for key, value in found.items():
            metric, comma, name = key.partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            documents = [
                row[metric]
                for row in results["samples"].get(task, ())
                if row["filter"] == name and metric in row
            ]
            low, high = interval(value, documents, found.get(f"{metric}_stderr,{name}"))
            yield TaskScore(
                task=task,
                metric=metric,
                filter=name,
                value=finite(value),
                low=low,
                high=high,
                n=sizes.get("effective", found.get("sample_len", 0)),
                limited=sizes.get("effective") != sizes.get("original"),
                fewshot=results["n-shot"].get(task, 0),
            )


def interval(
    value: object, documents: Sequence[object], stderr: object
) -> tuple[float | None, float | None]:
    """The 95 % interval of a metric over documents."""
    right = [document for document in documents if document in (0, 1)]
    if documents and len(right) == len(documents):
        found = proportion(sum(map(bool, right)), len(right))
        return found.low, found.high
    middle, error = finite(value), finite(stderr)
    if middle is None or error is None:
        return None, None
    return middle - 1.96 * error, middle + 1.96 * error


def finite(value: object) -> float | None:
    """A number that a record can hold; lm-eval also has NaN and the text N/A."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def record_of(
    model: str,
    lm: ReproLM,
    names: Sequence[str],
    results: Any,
    scores: Sequence[TaskScore],
    *,
    limit: int | None,
    seed: int,
) -> Record:
    """What was asked of which model, and what came out."""
    place = locate(model)
    folder = Path(place)
    answers = {
        task: [[row["doc_hash"], row["prompt_hash"], row["resps"]] for row in rows]
        for task, rows in results["samples"].items()
    }
    return new_record(
        "lm-eval",
        paper="lm-eval",
        scale="cpu" if lm.model.device.type == "cpu" else "gpu",
        seed=seed,
        config={
            "tasks": list(names),
            "limit": limit,
            "chat_template": lm.tokenizer.chat_template,
            "dtype": str(lm.model.dtype),
            "batch_size": lm.rows or "auto",
            "lm_eval": version("lm_eval"),
            "task_versions": {name: str(value) for name, value in results["versions"].items()},
        },
        model={"name": model, "files": folder_files(folder) if folder.is_dir() else {}},
        answers={task: digest_of(rows) for task, rows in answers.items()},
        scores=[asdict(score) for score in scores],
    )
