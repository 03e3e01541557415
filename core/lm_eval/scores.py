"""Runs lm-eval tasks with our sampler and stores the scores as a record."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from core.lm_eval.model import ReproLM
from core.models.folders import locate
from core.records.files import folder_files
from core.records.places import check_writable, own_results
from core.records.record import Record, new_record, write_record
from core.settings.canonical import digest_of
from core.stages.loading import Loading
from eval.errors import BadValue, MissingFile, UnknownName
from eval.json_lines import JsonFields
from eval.stats.estimates import proportion

OURS = str(files("eval.lm_tasks"))
UNLOADABLE = (OSError, ValueError, AssertionError, ImportError, KeyError)  # raised by its tasks
LmEvalResults: TypeAlias = JsonFields  # by task


@dataclass(frozen=True, kw_only=True)
class TaskScore:
    """A metric of a task as lm-eval computes it, with its interval and the number of documents.

    The interval is that of a proportion for a mean of zeros and ones, else 1.96 of lm-eval's
    standard errors, or None if lm-eval gives none. `limited` says that not all documents of the
    task were used.
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
    """lm-eval's task index with our tasks; failures to load raise errors that users can act on."""

    def load(self, task_list: Any) -> Any:  # Any: lists of four kinds
        """Load the tasks of these names.

        Raises:
            MissingFile: a data set is not available.
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
    """Return the index of all tasks; reading lm-eval's thousands of files takes seconds."""
    return Tasks(include_path=OURS, metadata=hints(data))


def hints(data: Path | None) -> dict[str, dict[str, Any] | str]:  # Any: lm-eval's type
    """Return the metadata that lm-eval passes to our tasks: the folder of benchmarks, if any."""
    return {"data": str(data)} if data else {}


def find_tasks(names: Sequence[str], data: Path | None = None) -> Tasks:
    """Return an index that holds these tasks, groups or tags; a name may also be a task file.

    Raises:
        UnknownName: there is no such task; the message lists the nearest names.
    """
    ours = Tasks(include_path=OURS, include_defaults=False, metadata=hints(data))
    task_names = [name for name in names if not (name.endswith(".yaml") and Path(name).is_file())]
    if all(name in ours.all_tasks for name in task_names):
        return ours
    index = all_tasks(data)
    for name in task_names:
        if name not in index.all_tasks:
            raise UnknownName("lm-eval task", name, index.all_tasks, "lm_eval ls tasks")
    return index


def score_tasks(
    model: str,
    names: Sequence[str],
    *,
    data: Path | None,
    limit: int | None,
    seed: int,
    loading: Loading | None = None,
) -> list[TaskScore]:
    """Score a model on lm-eval tasks and store a record under `runs/results/lm-eval/`.

    The chat template of the tokenizer is used if it has one, as on our own benchmarks.

    Raises:
        UnknownName, MissingFile, BadValue: a task does not exist or cannot run here.
        BadValue, DamagedFile, MissingFile, UnknownName: the model cannot be loaded.
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


def rows_of(results: LmEvalResults) -> Iterator[TaskScore]:
    """Yield the score of every metric of every task and group."""
    for task, task_metrics in {**results["results"], **results.get("groups", {})}.items():
        sizes = results["n-samples"].get(task, {})
        for key, value in task_metrics.items():
            metric, comma, name = key.partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            documents = [
                row[metric]
                for row in results["samples"].get(task, ())
                if row["filter"] == name and metric in row
            ]
            low, high = interval(value, documents, task_metrics.get(f"{metric}_stderr,{name}"))
            yield TaskScore(
                task=task,
                metric=metric,
                filter=name,
                value=finite(value),
                low=low,
                high=high,
                n=sizes.get("effective", task_metrics.get("sample_len", 0)),
                limited=sizes.get("effective") != sizes.get("original"),
                fewshot=results["n-shot"].get(task, 0),
            )


def interval(
    value: object, documents: Sequence[object], stderr: object
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a metric over documents; None, None if it is unknown."""
    binary = [document for document in documents if document in (0, 1)]
    if documents and len(binary) == len(documents):
        share = proportion(sum(map(bool, binary)), len(binary))
        return share.low, share.high
    middle, error = finite(value), finite(stderr)
    if middle is None or error is None:
        return None, None
    return middle - 1.96 * error, middle + 1.96 * error


def finite(value: object) -> float | None:
    """Return a finite number as a float, else None; lm-eval also reports NaN and "N/A"."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def record_of(
    model: str,
    lm: ReproLM,
    names: Sequence[str],
    results: LmEvalResults,
    scores: Sequence[TaskScore],
    *,
    limit: int | None,
    seed: int,
) -> Record:
    """Build the record of an evaluation: model, request, digests of the answers, and scores."""
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
