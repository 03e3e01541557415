r"""Finds test questions in training data, whatever their case, spacing, marks and number format.

A text is compared as its sequence of tokens (`eval.sets.tokens`). Three kinds are told apart, and
three more of questions in other words (`eval.sets.near_duplicates`):

- `same`: the question is a whole text of the row, or a whole line of it;
- `part`: the question has at least LONG tokens and is a part of a text;
- `near`: as `same` by letters and digits alone, so a sign, an operator or a decimal point differs.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any  # rows of foreign data have no static type

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import json_lines, read_text
from eval.sets.near_duplicates import REWORDED, Reworded
from eval.sets.problem import Problem
from eval.sets.tokens import Tokens, plain, tokens

VERBATIM = ("same", "part", "near")
KINDS = (*VERBATIM, *REWORDED)  # the strictest first
LONG = 12  # tokens; a shorter question may by chance be part of another one
REST = re.compile(r"[\W_]")


@dataclass(frozen=True)
class Match:
    """A test question and a training row that holds it (`row` counts from 1), and how."""

    id: str
    row: int
    kind: str
    question: str


def letters(text: str) -> str:
    """The letters and digits of a text."""
    return REST.sub("", plain(text))


def find_questions(rows: Iterable[Iterable[str]], problems: Sequence[Problem]) -> list[Match]:
    """Every pair of a problem and a training row, given by its texts, that holds its question."""
    index = Index(problems)
    return [
        Match(problem.id, number, kind, problem.question)
        for number, row in enumerate(rows, start=1)
        for problem, kind in index.held_by(row)
    ]


class Index:
    """Questions by their tokens, their letters, their first tokens if long, and reworded."""

    def __init__(self, problems: Sequence[Problem]):
        self.whole: dict[Tokens, list[Problem]] = defaultdict(list)
        self.near: dict[str, list[Problem]] = defaultdict(list)
        self.starts: dict[Tokens, list[tuple[Tokens, Problem]]] = defaultdict(list)
        for problem in problems:
            found = tokens(problem.question)
            self.whole[found].append(problem)
            self.near[letters(problem.question)].append(problem)
            if len(found) >= LONG:
                self.starts[found[:LONG]].append((found, problem))
        self.firsts = {start[0] for start in self.starts}
        self.reworded = Reworded(problems)

    def held_by(self, row: Iterable[str]) -> Iterator[tuple[Problem, str]]:
        """Each problem that a row's texts hold, once, and how; the strictest kind counts."""
        kinds: dict[str, dict[str, Problem]] = {kind: {} for kind in KINDS}
        for text in row:
            lines = text.split("\n")
            spelled_lines = [tokens(line) for line in lines]
            everything = tuple(chain.from_iterable(spelled_lines))
            parts = {everything, *spelled_lines} - {()}
            for part in parts:
                kinds["same"].update({p.id: p for p in self.whole.get(part, ())})
            kinds["part"].update({p.id: p for p in self.inside(everything)})
            for part in {letters(text), *map(letters, lines)} - {""}:
                kinds["near"].update({p.id: p for p in self.near.get(part, ())})
            for problem, kind in self.reworded.found_in(everything, parts):
                kinds[kind][problem.id] = problem
        seen: set[str] = set()
        for kind, found in kinds.items():
            yield from ((problem, kind) for key, problem in found.items() if key not in seen)
            seen |= found.keys()

    def inside(self, text: Tokens) -> Iterator[Problem]:
        """The long questions that are a part of the text."""
        for i in range(len(text) - LONG + 1):
            if text[i] in self.firsts:
                for question, problem in self.starts.get(text[i : i + LONG], ()):
                    if text[i : i + len(question)] == question:
                        yield problem


def read_texts(path: Path) -> list[list[str]]:
    """Return all strings of each row of a .jsonl, .json (a list), .parquet or .txt file.

    All but .parquet may be gzipped.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: it cannot be read as what its name says.
    """
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return [list(strings(row)) for row in READERS.get(kind, object_rows)(path)]


def parquet_rows(path: Path) -> list[Any]:
    """Return the rows of a Parquet file."""
    import pandas  # only this format needs it

    try:
        return pandas.read_parquet(path).to_dict("records")
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DamagedFile(f"{path}: not a Parquet file ({error})") from None


def list_rows(path: Path) -> list[Any]:
    """Return the items of a JSON list."""
    try:
        rows: Any = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not JSON ({error}), expected a list") from None
    if not isinstance(rows, list):
        raise DamagedFile(f"{path}: {type(rows).__name__}, expected a list")
    return rows


def object_rows(path: Path) -> list[Any]:
    """Return the objects of a file of JSON lines."""
    return [row for _, row in json_lines(path)]


def text_rows(path: Path) -> list[Any]:
    """Return the lines of a text file."""
    return list(read_text(path).split("\n"))


READERS = {".parquet": parquet_rows, ".json": list_rows, ".txt": text_rows}  # else JSON lines


def strings(value: Any) -> Iterator[str]:
    """Every string inside nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif hasattr(value, "__iter__"):
        for inner in value:
            yield from strings(inner)
