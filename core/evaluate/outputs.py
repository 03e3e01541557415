"""Scores of a file of finished outputs, without any model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any  # of a row's values, which differ in type

from core.rollout.stops import before_stop
from eval.errors import DamagedFile
from eval.json_lines import json_lines
from eval.samples.pal import executed
from eval.samples.prompted_samples import with_questions
from eval.samples.side_by_side import Judged
from eval.samples.store import TYPES, Sample, regrade
from eval.sandbox import Sandbox
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import PAL
from eval.stats.summary import Score, metrics, score
from eval.tables.page import Asked, render_page
from eval.terminal import say


def score_file(
    path: Path, benchmark: Benchmark, *, data: Path | None, mode: str
) -> tuple[list[Sample], list[Score]]:
    """Graded outputs of a JSONL file and their scores.

    A row has `id` and `output`, and may have `sample` (0 up) and `truncated`. In mode `pal` its
    program is run in a sandbox first.

    Raises:
        MissingFile, DamagedFile: with the file, the line and what was expected.
        BadValue: an id is none of the benchmark's.
    """
    outputs = list(read_outputs(path))
    if not outputs:
        raise DamagedFile(f"{path} holds no outputs: expected lines with id and output")
    texts = [row["output"] for row in outputs]
    if mode == PAL:
        with Sandbox() as sandbox:
            say(f"programs run in the sandbox {sandbox.backend}")
            stop = benchmark.stop(mode)
            cut = [before_stop(text, stop) for text in texts]
            texts = executed(
                [t if c is None else c for t, c in zip(texts, cut, strict=True)], sandbox
            )
    pairs = zip(outputs, texts, strict=True)
    ungraded = [not_graded(row, text, benchmark) for row, text in pairs]
    samples = regrade(ungraded, benchmark.load(data), mode)
    most = 1 + max(row["sample"] for row in outputs)
    return samples, score(samples, benchmark, metrics(most), mode=mode)


def not_graded(row: dict[str, Any], text: str, benchmark: Benchmark) -> Sample:
    """A row of the file, and its text with the outputs of its program, as a sample."""
    return Sample(
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


def page_of(
    judged: Sequence[Judged], benchmark: Benchmark, *, data: Path | None, mode: str, title: str
) -> str:
    """The page to browse samples with both graders' verdicts."""
    problems = benchmark.load(data)
    prompts = [benchmark.prompt(problem, mode) for problem in problems]
    asked = with_questions([one.sample for one in judged], problems, prompts)
    pairs = zip(asked, judged, strict=True)
    graded = [replace(a, paper_correct=j.paper.correct) for a, j in pairs]
    return render_page([Asked(benchmark.name, (graded,))], [title], title)


def read_outputs(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file, gzipped or not, each with id, output and sample."""
    for number, row in json_lines(path):
        yield to_output(row, f"{path}, line {number}")


def to_output(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return one row as an output.

    Raises:
        DamagedFile: it has no id or no output, or one of another type.
    """
    missing = [name for name in ("id", "output") if name not in row]
    if missing:
        raise DamagedFile(
            f"{where}: no {' and no '.join(missing)}: expected a JSON object with id and output"
        )
    found = {"id": row["id"], "output": row["output"], "sample": row.get("sample", 0)}
    found["truncated"] = row.get("truncated")
    for name, value in found.items():
        if type(value) not in TYPES[name]:
            expected = " or ".join(kind.__name__ for kind in TYPES[name])
            raise DamagedFile(f"{where}: {name}={value!r:.60}: expected {expected}")
    return found
