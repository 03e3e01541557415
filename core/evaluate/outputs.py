"""Grades a file of finished outputs, without any model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TypedDict, cast

from core.rollout.stops import before_stop
from eval.errors import DamagedFile
from eval.json_lines import json_lines
from eval.samples.pal import execute_programs
from eval.samples.prompted_samples import with_questions
from eval.samples.side_by_side import Judged
from eval.samples.store import TYPES, Rated, Sample, regrade
from eval.sandbox import Sandbox
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import PAL
from eval.stats.summary import Score, metrics, metrics_of_rated, score
from eval.tables.page import SampleSet, render_page
from eval.terminal import say

OUTPUT_TYPES = {**TYPES, "rm_score": (float, int, type(None))}


class Output(TypedDict):
    """A row of a file of outputs."""

    id: str
    output: str
    sample: int
    truncated: bool | None
    rm_score: float | None


def score_file(
    path: Path, benchmark: Benchmark, *, data: Path | None, mode: str
) -> tuple[list[Sample], list[Score]]:
    """Grade the outputs of a JSONL file and return the samples and their scores.

    A row has `id` and `output`, and may have `sample` (counted from 0), `truncated` and `rm_score`,
    the rating of a reward model. In mode `pal` the program of each output is run in a sandbox
    first.

    Raises:
        MissingFile, DamagedFile: the message names the file, the line and what is expected; some
            rows have a rating and others have none.
        BadValue: an id does not belong to the benchmark.
    """
    outputs = list(read_outputs(path))
    if not outputs:
        raise DamagedFile(f"{path} holds no outputs: expected lines with id and output")
    texts = [row["output"] for row in outputs]
    if mode == PAL:
        with Sandbox() as sandbox:
            say(f"programs run in the sandbox {sandbox.backend}")
            stop = benchmark.stop(mode)
            stopped = [before_stop(text, stop) for text in texts]
            texts = execute_programs(
                [t if c is None else c for t, c in zip(texts, stopped, strict=True)], sandbox
            )
    pairs = zip(outputs, texts, strict=True)
    ungraded = [not_graded(row, text, benchmark) for row, text in pairs]
    samples = regrade(ungraded, benchmark.load(data), mode)
    k = 1 + max(row["sample"] for row in outputs)
    ratings = [row["rm_score"] for row in outputs if row["rm_score"] is not None]
    if ratings and len(ratings) < len(outputs):
        raise DamagedFile(
            f"{path}: {len(ratings)} of {len(outputs)} rows have rm_score: expected all or none"
        )
    of_ratings = metrics_of_rated(k, weighted=min(ratings) >= 0) if ratings else ()
    return samples, score(samples, benchmark, (*metrics(k, mode), *of_ratings), mode=mode)


def not_graded(row: Output, text: str, benchmark: Benchmark) -> Sample:
    """Return an ungraded sample of a row, with `text` as its output."""
    sample = Sample(
        benchmark=benchmark.name,
        id=row["id"],
        sample=row["sample"],
        output=text,
        tokens=0,
        truncated=row["truncated"],
        extracted=None,
        correct=None,
        rule="none",
        reason="not graded",
    )
    return sample if row["rm_score"] is None else Rated(**asdict(sample), rm_score=row["rm_score"])


def page_of(
    verdicts: Sequence[Judged], benchmark: Benchmark, *, data: Path | None, mode: str, title: str
) -> str:
    """Render the page to browse samples with the verdicts of both graders."""
    problems = benchmark.load(data)
    prompts = [benchmark.prompt(problem, mode) for problem in problems]
    prompted = with_questions([verdict.sample for verdict in verdicts], problems, prompts)
    pairs = zip(prompted, verdicts, strict=True)
    graded = [replace(sample, paper_correct=verdict.paper.correct) for sample, verdict in pairs]
    return render_page([SampleSet(benchmark.name, (graded,))], [title], title)


def read_outputs(path: Path) -> Iterator[Output]:
    """Yield the outputs of a JSONL file, plain or gzipped."""
    for number, row in json_lines(path):
        yield to_output(row, f"{path}, line {number}")


def to_output(row: Mapping[str, object], where: str) -> Output:
    """Check a row and return it as an output.

    Raises:
        DamagedFile: the row lacks `id` or `output`, or a field has another type.
    """
    missing = [name for name in ("id", "output") if name not in row]
    if missing:
        raise DamagedFile(
            f"{where}: no {' and no '.join(missing)}: expected a JSON object with id and output"
        )
    output: dict[str, object] = {
        "id": row["id"],
        "output": row["output"],
        "sample": row.get("sample", 0),
        "truncated": row.get("truncated"),
        "rm_score": row.get("rm_score"),
    }
    for name, value in output.items():
        if type(value) not in OUTPUT_TYPES[name]:
            expected = " or ".join(kind.__name__ for kind in OUTPUT_TYPES[name])
            raise DamagedFile(f"{where}: {name}={value!r:.60}: expected {expected}")
    if output["rm_score"] is not None and not isfinite(cast(float, output["rm_score"])):
        raise DamagedFile(f"{where}: rm_score={output['rm_score']}: expected a finite number")
    return cast(Output, output)
