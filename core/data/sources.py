"""Where the rows of a data set come from: benchmarks, the hub, or a file of JSON lines."""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import json_lines
from eval.pocket.draft import Draft
from eval.pocket.suites import drafts
from eval.sets.benchmarks import find_benchmark
from eval.sets.loading import hub_rows
from eval.sets.prompts import with_request

Row: TypeAlias = dict[str, Any]  # Any: columns of any type
STYLES: Mapping[str, Callable[[Draft], str]] = {
    "worked": lambda made: made.solution,
    "program": lambda made: made.transcript,
}


@dataclass(frozen=True)
class Problems:
    """The training problems of benchmarks as these ask them; of several, one of each in turn.

    `holds_out`: there is a split `valid` too. With a `style`, one of `STYLES`, each row has a
    completion: the generator's own solution, told in that style. Of each benchmark there are the
    `first` training problems, or all.
    """

    benchmarks: tuple[str, ...]
    holds_out: bool = False
    style: str | None = None
    first: int | None = None

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """The rows of all benchmarks, that any stretch holds all of them."""
        parts = [self.part(benchmark, split, data) for benchmark in self.benchmarks]
        return [row for group in zip(*parts, strict=True) for row in group]

    def part(self, benchmark: str, split: str, data: Path | None) -> list[Row]:
        """The rows of one benchmark."""
        found = problem_rows(benchmark, split, data)
        if split == "train":
            found = found[: self.first]
        if self.style is None:
            return found
        told = map(STYLES[self.style], drafts(benchmark, split))
        said = ({"completion": [{"role": "assistant", "content": text}]} for text in told)
        return [row | turn for row, turn in zip(found, said, strict=self.first is None)]

    def place(self, name: str, nth: int) -> str:
        """Name a row, counted from 0."""
        return f"{name}, row {nth + 1}"

    def version(self, name: str) -> str:  # noqa: ARG002 - as of every source
        """The style, and how many; the rest is of the benchmarks."""
        return str(self.style) if self.first is None else f"{self.style}, first {self.first}"


@dataclass(frozen=True)
class File:
    """A file of JSON lines such as another distribution brings; `digest` is its SHA-256."""

    path: Path
    digest: str | None = None
    benchmarks: tuple[str, ...] = field(default=(), init=False)
    holds_out: bool = field(default=False, init=False)

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """The rows of the file."""
        return read_rows(self.path, self.digest)

    def place(self, name: str, nth: int) -> str:  # noqa: ARG002 - as of every source
        """Name the line of a row, counted from 0."""
        return line_of(self.path, nth)

    def version(self, name: str) -> str:  # noqa: ARG002 - as of every source
        """Digest of the file."""
        return file_digest(self.path)


@dataclass(frozen=True)
class Hub:
    """A data set of the Hugging Face hub, or its rows in a folder `name` of REPRO_DATA.

    `columns` names the hub's column for each of ours, `a.b` for what lies in a column; without it
    the rows stay as they are. A `question` becomes the prompt as a benchmark would ask it, and a
    `completion` beside it the assistant's turn. Without an `id` no public place of it is known:
    there is the folder alone.
    """

    id: str | None = None
    config: str | None = None
    split: str = "train"
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    benchmarks: tuple[str, ...] = field(default=(), init=False)
    holds_out: bool = field(default=False, init=False)

    def rows(self, name: str, split: str, data: Path | None) -> list[Row]:  # noqa: ARG002 - as of every source
        """The rows of the folder, else of the hub."""
        path = local(name, data)
        found = read_rows(path, None) if path else self.download(name)
        return [self.row(f"{name}-{place}", row) for place, row in enumerate(found)]

    def place(self, name: str, nth: int) -> str:
        """Name the line of a row in the folder, or its number in the data set, counted from 0."""
        path = local(name, None)
        return line_of(path, nth) if path else f"{name}, row {nth + 1}"

    def row(self, key: str, row: Mapping[str, Any]) -> Row:
        """One row in our columns."""
        if not self.columns:
            return dict(row)
        try:
            taken = {ours: within(row, theirs) for ours, theirs in self.columns.items()}
        except (KeyError, TypeError) as error:
            raise DamagedFile(f"{key}: {error} is no column of {sorted(row)}") from None
        if "question" not in taken:
            return taken
        asked = {"content": with_request(taken["question"])}
        if "completion" in taken:
            taken["completion"] = [{"role": "assistant", "content": taken["completion"]}]
        return {"id": key, "prompt": [{"role": "user", **asked}], "language": "en"} | taken

    def download(self, name: str) -> Iterable[Mapping[str, Any]]:
        """The rows of the hub, through `datasets` and its cache."""
        place = f"put its rows as JSON lines into {name}/train.jsonl in the folder of REPRO_DATA"
        if self.id is None:
            raise MissingFile(f"{name}: no public place of it is known: {place}")
        return hub_rows(name, self.id, self.config, self.split, place)

    def version(self, name: str) -> str:
        """Digest of the file in the folder, or the hub's name."""
        path = local(name, None)
        return file_digest(path) if path else f"hub {self.id} {self.config} {self.split}"


Source: TypeAlias = Problems | File | Hub


def problem_rows(name: str, split: str, data: Path | None) -> list[Row]:
    """One row for every problem of a benchmark's split."""
    benchmark = find_benchmark(name)
    problems = benchmark.load(data, split=split)
    found: list[Row] = [
        {
            "id": problem.id,
            "prompt": [{"role": "user", "content": benchmark.prompt(problem)}],
            "question": problem.question,
            "answer": problem.answer,
            "language": problem.language,
            "exact_form": problem.exact_form,
            **({"solution": problem.solution} if benchmark.is_generated else {}),
        }
        for problem in problems
    ]
    if any(problem.answers for problem in problems):
        for row, problem in zip(found, problems, strict=True):
            row["answers"] = asdict(problem.answers) if problem.answers else None
    return found


def read_rows(path: Path, digest: str | None) -> list[Row]:
    """Return the rows of a file of JSON lines.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: it has another digest, or a line is no JSON object.
    """
    if digest is not None and (found := file_digest(path)) != digest:
        raise DamagedFile(f"{path}: its SHA-256 is {found}, expected {digest}: get it again")
    return [row for _, row in json_lines(path)]


def line_of(path: Path, place: int) -> str:
    """Name the line of a file of JSON lines that holds the row at a place, counted from 0."""
    number, _ = next(islice(json_lines(path), place, None))
    return f"{path}, line {number}"


def outline(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the columns of all rows of a file of JSON lines, and the number of rows.

    Raises:
        MissingFile, DamagedFile: as of `read_rows`; or there are no rows.
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


def column_names(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns of all rows, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def local(name: str, data: Path | None) -> Path | None:
    """The file with a data set's rows in a folder, else in that of REPRO_DATA; None without one."""
    folder = data or os.environ.get("REPRO_DATA")
    path = Path(folder or ".") / name / "train.jsonl"
    return path if folder and path.is_file() else None


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        MissingFile: there is no such file.
    """
    if not path.is_file():
        raise MissingFile(f"{path}: no such file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def within(row: Mapping[str, Any], path: str) -> Any:  # Any: of a column
    """What lies in a row at a path of columns."""
    value: Any = row
    for name in path.split("."):
        value = value[name]
    return value
