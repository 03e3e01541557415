"""Sources of data-set rows: benchmarks, the Hugging Face hub, and files of JSON lines."""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import JsonObject, json_lines
from eval.pocket.draft import Draft
from eval.pocket.solver import right_solution
from eval.pocket.suites import drafts
from eval.sets.benchmarks import find_benchmark
from eval.sets.loading import hub_rows
from eval.sets.prompts import with_request

Row: TypeAlias = JsonObject  # columns of any type


@dataclass(frozen=True)
class Style:
    """Style of asking and answering a generated problem.

    Attributes:
        mode: the mode of answering that its prompt requests.
        answer: returns the text of the answer.
    """

    mode: str
    answer: Callable[[Draft], str]


STYLES: Mapping[str, Style] = {
    "worked": Style("cot", lambda draft: draft.solution),
    "program": Style("tir", lambda draft: draft.transcript),
    # Right solutions that no starting model writes: every line checked, or results alone.
    "careful": Style("cot", lambda draft: right_solution(draft, "careful").text),
    "short": Style("cot", lambda draft: right_solution(draft, "short").text),
}


@dataclass(frozen=True)
class Problems:
    """Training problems of benchmarks, alternating between the benchmarks.

    Attributes:
        benchmarks: names of the benchmarks.
        holds_out: whether there is a split `valid`, too.
        style: a key of `STYLES`: rows are then asked in its mode and have its answer as
            completion. None asks for worked answers, and gives no completions.
        first: number of training problems of each benchmark; None takes all.
        draw: draw of generated problems.
    """

    benchmarks: tuple[str, ...]
    holds_out: bool = False
    style: str | None = None
    first: int | None = None
    draw: int = 0

    def for_seed(self, seed: int) -> "Problems":
        """Return the problems of a seed's draw, if training problems depend on the seed."""
        generators = [find_benchmark(name).generator for name in self.benchmarks]
        is_drawn = any(generator and generator.is_drawn_by_seed for generator in generators)
        return replace(self, draw=seed) if is_drawn else self

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """Return the rows of all benchmarks, alternating between them."""
        parts = [self.part(benchmark, split, data) for benchmark in self.benchmarks]
        return [row for group in zip(*parts, strict=True) for row in group]

    def part(self, benchmark: str, split: str, data: Path | None) -> list[Row]:
        """Return the rows of one benchmark.

        Raises:
            BadValue, MissingFile, UnknownName: the benchmark, its split or its draw does not exist.
        """
        style = STYLES[self.style or "worked"]
        rows = problem_rows(benchmark, split, data, self.draw, style.mode)
        if split == "train":
            rows = rows[: self.first]
        if self.style is None:
            return rows
        count = None if self.first is None else len(rows)
        texts = [style.answer(draft) for draft in drafts(benchmark, split)[:count]]
        return with_completions(rows, texts)

    def place(self, name: str, nth: int) -> str:
        """Return a description of the row at index `nth`."""
        return f"{name}, row {nth + 1}"

    def version(self, name: str) -> str:  # noqa: ARG002 - as of every source
        """Return style, number and draw of the problems; benchmarks have versions of their own."""
        first = "" if self.first is None else f", first {self.first}"
        return f"{self.style}{first}" + (f", draw {self.draw}" if self.draw else "")


@dataclass(frozen=True)
class Generated:
    """Rows that are computed for each seed; a benchmark's problems are held out, or other rows.

    Attributes:
        make: returns the training rows of a seed.
        text: what the rows are and their version, which changes whenever a row does.
        benchmark: name of the benchmark; None if other rows are held out.
        complete: returns a completion for each held-out problem of a seed; None holds out problems
            without completions.
        seed: seed of the rows and draw of the problems.
        hold_out: returns the held-out rows of a seed, without a benchmark.
    """

    make: Callable[[int], list[Row]]
    text: str
    benchmark: str | None = None
    complete: Callable[[int], list[str]] | None = None
    seed: int = 0
    hold_out: Callable[[int], list[Row]] | None = None
    holds_out: bool = field(default=True, init=False)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Name of the benchmark, if there is one."""
        return () if self.benchmark is None else (self.benchmark,)

    def for_seed(self, seed: int) -> "Generated":
        """Return the rows of a seed."""
        return replace(self, seed=seed)

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """Return the training rows, or the problems of another split.

        Those of the split `valid` come with completions if there are some.
        """
        if split == "train":
            return self.make(self.seed)
        if self.benchmark is None:
            return [] if self.hold_out is None else self.hold_out(self.seed)
        problems = problem_rows(self.benchmark, split, data, self.seed)
        if self.complete is None or split != "valid":
            return problems
        return with_completions(problems, self.complete(self.seed))

    def place(self, name: str, nth: int) -> str:
        """Return a description of the row at index `nth`."""
        return f"{name}, row {nth + 1}"

    def version(self, name: str) -> str:  # noqa: ARG002 - as of every source
        """Return the text and the seed."""
        return f"{self.text}, seed {self.seed}"


@dataclass(frozen=True)
class File:
    """Local file of JSON lines; `digest` is its SHA-256, if it is to be checked."""

    path: Path
    digest: str | None = None
    benchmarks: tuple[str, ...] = field(default=(), init=False)
    holds_out: bool = field(default=False, init=False)

    def for_seed(self, seed: int) -> "File":  # noqa: ARG002 - as of every source
        """Return the file, which all seeds share."""
        return self

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """Return the rows of the file.

        Raises:
            MissingFile, DamagedFile: see `read_rows`.
        """
        return read_rows(self.path, self.digest)

    def place(self, name: str, nth: int) -> str:  # noqa: ARG002 - as of every source
        """Return the path and line of the row at index `nth`."""
        return describe_line(self.path, nth)

    def version(self, name: str) -> str:  # noqa: ARG002 - as of every source
        """Return the SHA-256 of the file.

        Raises:
            MissingFile: the file does not exist.
        """
        return file_digest(self.path)


@dataclass(frozen=True)
class Hub:
    """Data set of the Hugging Face hub, or its rows in a folder `name` of REPRO_DATA.

    Attributes:
        id: name on the hub; None if no public source is known.
        config: configuration on the hub.
        split: split on the hub.
        columns: hub column for each of our columns, `a.b` for a nested one; if empty, rows stay
            unchanged. With a `question` the row also gets a prompt as the benchmarks word it,
            and its `completion` becomes an assistant message.
    """

    id: str | None = None
    config: str | None = None
    split: str = "train"
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    benchmarks: tuple[str, ...] = field(default=(), init=False)
    holds_out: bool = field(default=False, init=False)

    def for_seed(self, seed: int) -> "Hub":  # noqa: ARG002 - as of every source
        """Return the data set, which all seeds share."""
        return self

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """Return the rows of the folder if there is one, else those of the hub.

        Raises:
            MissingFile, DamagedFile: the rows cannot be read or downloaded, or lack a column.
        """
        path = local_file(name, data)
        rows = read_rows(path, None) if path else self.download(name)
        return [self.row(f"{name}-{index}", row) for index, row in enumerate(rows)]

    def place(self, name: str, nth: int) -> str:
        """Return the path and line, or the data set and number, of the row at index `nth`."""
        path = local_file(name, None)
        return describe_line(path, nth) if path else f"{name}, row {nth + 1}"

    def row(self, key: str, row: Mapping[str, object]) -> Row:
        """Convert one row to our columns; without `columns`, return a copy of the row.

        If our columns have a `question`, the row also gets an `id`, a `prompt` and the `language`
        "en", and a `completion` becomes an assistant message. Without a `question`, a `completion`
        stays unchanged.

        Args:
            key: name and index of the row, such as "gsm8k-0"; its `id`, and its name in errors.
            row: row of the hub.

        Raises:
            DamagedFile: a column is missing.
        """
        if not self.columns:
            return dict(row)
        try:
            ours_by_name = {
                ours: nested_value(row, theirs) for ours, theirs in self.columns.items()
            }
        except (KeyError, TypeError) as error:
            raise DamagedFile(f"{key}: {error} is no column of {sorted(row)}") from None
        if "question" not in ours_by_name:
            return ours_by_name
        message = {"content": with_request(ours_by_name["question"])}
        if "completion" in ours_by_name:
            ours_by_name["completion"] = [
                {"role": "assistant", "content": ours_by_name["completion"]}
            ]
        return {"id": key, "prompt": [{"role": "user", **message}], "language": "en"} | ours_by_name

    def download(self, name: str) -> Iterable[Mapping[str, object]]:
        """Return the rows of the hub, through `datasets` and its cache.

        Raises:
            MissingFile: no public source is known, or the hub cannot be reached.
        """
        place = f"put its rows as JSON lines into {name}/train.jsonl in the folder of REPRO_DATA"
        if self.id is None:
            raise MissingFile(f"{name}: no public place of it is known: {place}")
        return hub_rows(name, self.id, self.config, self.split, place)

    def version(self, name: str) -> str:
        """Return the SHA-256 of the file in the folder, or the hub's name, config and split."""
        path = local_file(name, None)
        return file_digest(path) if path else f"hub {self.id} {self.config} {self.split}"


Source: TypeAlias = Problems | Generated | File | Hub


def problem_rows(
    name: str, split: str, data: Path | None, draw: int = 0, mode: str = "cot"
) -> list[Row]:
    """Return one row for each problem of a benchmark's split, of a draw if it is generated."""
    benchmark = find_benchmark(name, draw)
    problems = benchmark.load(data, split=split)
    rows: list[Row] = [
        {
            "id": problem.id,
            "prompt": [{"role": "user", "content": benchmark.prompt(problem, mode)}],
            "question": problem.question,
            "answer": problem.answer,
            "language": problem.language,
            "exact_form": problem.exact_form,
            **(
                {"solution": problem.solution}
                if benchmark.is_generated and problem.solution
                else {}
            ),
        }
        for problem in problems
    ]
    if any(problem.answers for problem in problems):
        for row, problem in zip(rows, problems, strict=True):
            row["answers"] = asdict(problem.answers) if problem.answers else None
    return rows


def with_completions(rows: Iterable[Row], texts: Iterable[str]) -> list[Row]:
    """Return rows with texts as their completions, one assistant message each."""
    return [
        row | {"completion": [{"role": "assistant", "content": text}]}
        for row, text in zip(rows, texts, strict=True)
    ]


def read_rows(path: Path, digest: str | None) -> list[Row]:
    """Return the rows of a file of JSON lines.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: its digest differs, or a line is no JSON object.
    """
    if digest is not None and (found_digest := file_digest(path)) != digest:
        raise DamagedFile(f"{path}: its SHA-256 is {found_digest}, expected {digest}: get it again")
    return [row for _, row in json_lines(path)]


def describe_line(path: Path, index: int) -> str:
    """Return the path and line number of the row at an index of a file of JSON lines."""
    number, _ = next(islice(json_lines(path), index, None))
    return f"{path}, line {number}"


def outline(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the columns of a file of JSON lines, and its number of rows.

    Raises:
        MissingFile, DamagedFile: see `read_rows`; DamagedFile too if there are no rows.
    """
    try:
        file = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{path}: no such file") from None
    return _outline(path.absolute(), path, file.st_mtime_ns, file.st_size)


@lru_cache
def _outline(absolute: Path, path: Path, mtime: int, size: int) -> tuple[tuple[str, ...], int]:  # noqa: ARG001 - keys of the cache
    rows = read_rows(path, None)
    if not rows:
        raise DamagedFile(f"{path}: there are no rows, expected a JSON object on each line")
    return column_names(rows), len(rows)


def column_names(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the columns of all rows, in the order of their first appearance."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def local_file(name: str, data: Path | None) -> Path | None:
    """Return the file of a data set's rows in a folder or in REPRO_DATA; None without one."""
    folder = data or os.environ.get("REPRO_DATA")
    path = Path(folder or ".") / name / "train.jsonl"
    return path if folder and path.is_file() else None


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes.

    Raises:
        MissingFile: the file does not exist.
    """
    if not path.is_file():
        raise MissingFile(f"{path}: no such file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def nested_value(row: Mapping[str, object], path: str) -> Any:  # Any: of a column
    """Return the value at a dotted path of columns in a row."""
    value: Any = row
    for name in path.split("."):
        value = value[name]
    return value
