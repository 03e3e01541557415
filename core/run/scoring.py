"""Scores outside a run: a model on benchmarks, or a file of finished outputs without any model."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from core.rollout.journal import JournaledExecutor
from core.run.kept import Tools, kept_samples, no_tools
from core.run.stages import say
from eval.asked import read_lines, with_questions
from eval.benchmarks import Benchmark, find_benchmark
from eval.errors import BadValue, DamagedFile
from eval.samples import Sample, regrade
from eval.sandbox import Sandbox
from eval.scoring import Decoding, run_benchmark
from eval.side_by_side import Judged
from eval.summary import Score, score
from eval.tables.page import render_page
from eval.tir import ToolSampler, program_scores

if TYPE_CHECKING:
    from core.rollout.sampler import ChunkedSampler

Printed: TypeAlias = dict[str, tuple[float, float]]  # a percentage and its rounding, by benchmark


def score_model(
    model: str,
    benchmarks: Sequence[str],
    *,
    mode: str,
    decoding: Decoding,
    data: Path | None,
    limit: int | None,
    max_tokens: int | None = None,
    server: str | None = None,
    out: Path | None = None,
) -> list[Score]:
    """The scores of a model (a folder, a hub id or a shipped name) on benchmarks.

    Without `max_tokens` an answer may be as long as its benchmark allows. The `server` at this
    address has the model, else it is loaded here. With `out`, the samples are kept in that folder,
    and a run that was killed goes on from there.
    """
    found = [find_benchmark(name) for name in benchmarks]
    load = cache(lambda: load_sampler(model, server))  # what is finished needs no model
    scores: list[Score] = []
    with tools(mode) as with_tools:
        for benchmark in found:
            asked: dict[str, Any] = {  # Any: keywords of several types
                "data": data,
                "limit": limit,
                "mode": mode,
                "decoding": replace(decoding, max_tokens=max_tokens or benchmark.max_tokens),
            }
            if out is None:
                samples: Sequence[Sample] = run_benchmark(
                    with_tools(load(), None), benchmark, **asked
                )
            else:
                samples = kept_samples(
                    out, model, load, benchmark, server=server, tools=with_tools, **asked
                )
            named = metrics(decoding.samples)
            scores += score(samples, benchmark, named, mode=mode)
            if mode == "tir":
                problems = benchmark.load(data, limit)
                scores += program_scores(samples, problems, benchmark, named)
    return scores


@contextmanager
def tools(mode: str) -> Generator[Tools]:
    """What a mode makes of a sampler: with tools, answers whose programs run in a sandbox.

    With a journal, programs whose results are in it are not run again.

    Raises:
        SandboxUnavailable: no backend works here.
    """
    if mode != "tir":
        yield no_tools
        return
    with Sandbox() as sandbox:
        say(f"programs run in the sandbox {sandbox.backend}")
        yield lambda sampler, journal: ToolSampler(
            sampler, sandbox if journal is None else JournaledExecutor(sandbox, journal)
        )


def load_sampler(model: str, server: str | None = None) -> "ChunkedSampler[Any]":
    """A model as a sampler: on the GPU here if there is one, or behind a server."""
    import torch

    from core.models.load import load_policy, load_tokenizer, locate
    from core.rollout.sampler import PolicySampler
    from core.rollout.server_sampler import ServerSampler
    from core.run.train import prepare_torch

    if server is not None:
        return ServerSampler(server, locate(model), load_tokenizer(model))
    prepare_torch(None)
    policy: Any = load_policy(model).eval()  # Any: its methods are half typed
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return PolicySampler(policy.to(device), load_tokenizer(model))


def metrics(samples: int) -> tuple[str, ...]:
    """What K samples a problem can give: top1 alone, or the mean, both votes and the best of K."""
    names = ("avg", "maj", "maj-first", "pass")
    return ("top1",) if samples == 1 else tuple(f"{name}@{samples}" for name in names)


def score_file(
    path: Path, benchmark: Benchmark, *, data: Path | None, mode: str
) -> tuple[list[Sample], list[Score]]:
    """Graded outputs of a JSONL file and their scores.

    A row has `id` and `output`, and may have `sample` (0 up) and `truncated`.

    Raises:
        MissingFile, DamagedFile: with the file, the line and what was expected.
        BadValue: an id is none of the benchmark's.
    """
    outputs = list(read_outputs(path))
    ungraded = [
        Sample(
            benchmark=benchmark.name,
            id=row["id"],
            sample=row["sample"],
            output=row["output"],
            tokens=0,
            truncated=row["truncated"],
            extracted=None,
            correct=None,
            rule="none",
            reason="not graded",
        )
        for row in outputs
    ]
    samples = regrade(ungraded, benchmark.load(data))
    most = 1 + max((row["sample"] for row in outputs), default=0)
    return samples, score(samples, benchmark, metrics(most), mode=mode)


def page_of(
    judged: Sequence[Judged], benchmark: Benchmark, *, data: Path | None, mode: str, title: str
) -> str:
    """The page to browse samples with both graders' verdicts."""
    problems = benchmark.load(data)
    prompts = [benchmark.prompt(problem, mode) for problem in problems]
    asked = with_questions([one.sample for one in judged], problems, prompts)
    pairs = zip(asked, judged, strict=True)
    return render_page([replace(a, paper_correct=j.paper.correct) for a, j in pairs], title)


def read_outputs(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file, gzipped or not, each with id, output and sample."""
    for number, line in enumerate(read_lines(path), start=1):
        if line:
            yield to_output(line, f"{path}, line {number}")


def to_output(line: str, where: str) -> dict[str, Any]:
    """One line as an output.

    Raises:
        DamagedFile: it is no JSON object with an id and an output.
    """
    try:
        row = json.loads(line)
        found = {"id": row["id"], "output": row["output"], "sample": row.get("sample", 0)}
        cut = row.get("truncated")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(
            f"{where}: expected a JSON object with id and output ({error})"
        ) from error
    kinds = {"id": str, "output": str, "sample": int}
    for name, kind in kinds.items():
        if not isinstance(found[name], kind) or isinstance(found[name], bool):
            raise DamagedFile(f"{where}: {name}={found[name]!r:.60}: expected {kind.__name__}")
    return {**found, "truncated": cut if isinstance(cut, bool) else None}


def as_rows(scores: Sequence[Score], printed: Printed) -> list[dict[str, Any]]:
    """Scores as JSON; `against` is what one says about the number printed for its benchmark.

    Compared is the mean over answers (top1, avg@K), with the benchmark's own margin.
    """
    from eval.comparisons import gate  # scipy.stats is slow to import

    rows = [asdict(one) for one in scores]
    for one, row in zip(scores, rows, strict=True):
        if one.benchmark in printed and one.metric.partition("@")[0] in ("top1", "avg"):
            value, rounding = printed[one.benchmark]
            margin = find_benchmark(one.benchmark).margin
            found = gate(one.value, one.low90, one.high90, value, margin, rounding)
            row["against"] = {"reported": value, **asdict(found)}
    return rows


def read_reported(text: str | None, scored: Sequence[str]) -> Printed:
    """`gsm8k=88.2,math=51.7` as numbers with half a unit of their last digits.

    Raises:
        BadValue: it is not of that form, or names a benchmark that is not scored.
    """
    from eval.comparisons import printed_number

    parts = [part.strip().partition("=") for part in (text or "").split(",") if part.strip()]
    strangers = sorted({name for name, _, _ in parts} - set(scored))
    if strangers:
        raise BadValue(
            f"reported scores of {', '.join(strangers)}: expected NAME=PERCENT for what is "
            f"scored here: {', '.join(scored)}"
        )
    return {name: printed_number(value) for name, _, value in parts}
