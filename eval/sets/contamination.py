r"""Finds test questions in training data, regardless of case, spacing, punctuation and notation.

Texts are compared as sequences of tokens (`eval.sets.tokens`). There are three verbatim kinds of
matches, and three more of reworded questions (`eval.sets.near_duplicates`):

- `same`: the question is a whole text of the row, or a whole line of it;
- `part`: the question has at least LONG tokens and is a part of a text;
- `near`: the same by letters and digits alone, so a sign, an operator or a decimal point differs.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import json_lines, read_text
from eval.sets.near_duplicates import REWORDED, RewordedIndex
from eval.sets.problem import Problem
from eval.sets.tokens import Tokens, plain, tokens

VERBATIM = ("same", "part", "near")
KINDS = (*VERBATIM, *REWORDED)  # the strictest first
LONG = 12  # tokens; a shorter question may by chance be part of another one
NOT_ALPHANUMERIC = re.compile(r"[\W_]")


@dataclass(frozen=True)
class Match:
    """A test question found in a training row: the problem's id, the row from 1, and the kind."""

    id: str
    row: int
    kind: str
    question: str


def letters_and_digits(text: str) -> str:
    """Return the lower-case letters and digits of a text."""
    return NOT_ALPHANUMERIC.sub("", plain(text))


def find_questions(rows: Iterable[Iterable[str]], problems: Sequence[Problem]) -> list[Match]:
    """Return a match for each pair of a training row and a problem whose question the row holds.

    `rows` are the texts of each training row.
    """
    index = Index(problems)
    return [
        Match(problem.id, number, kind, problem.question)
        for number, row in enumerate(rows, start=1)
        for problem, kind in index.matches_in_row(row)
    ]


class Index:
    """An index of questions: by all their tokens, their letters, their first tokens, reworded."""

    def __init__(self, problems: Sequence[Problem]):
        self.by_tokens: dict[Tokens, list[Problem]] = defaultdict(list)
        self.by_letters: dict[str, list[Problem]] = defaultdict(list)
        self.by_start: dict[Tokens, list[tuple[Tokens, Problem]]] = defaultdict(list)
        for problem in problems:
            question = tokens(problem.question)
            self.by_tokens[question].append(problem)
            self.by_letters[letters_and_digits(problem.question)].append(problem)
            if len(question) >= LONG:
                self.by_start[question[:LONG]].append((question, problem))
        self.first_tokens = {start[0] for start in self.by_start}
        self.reworded = RewordedIndex(problems)

    def matches_in_row(self, row: Iterable[str]) -> Iterator[tuple[Problem, str]]:
        """Yield each problem that a row's texts hold once, with its strictest kind of match."""
        by_kind: dict[str, dict[str, Problem]] = {kind: {} for kind in KINDS}
        for text in row:
            for problem, kind in self.matches_in_text(text):
                by_kind[kind][problem.id] = problem
        reported: set[str] = set()
        for kind, problems in by_kind.items():
            yield from ((problem, kind) for key, problem in problems.items() if key not in reported)
            reported |= problems.keys()

    def matches_in_text(self, text: str) -> Iterator[tuple[Problem, str]]:
        """Yield every match in one text with its kind; a problem may come several times."""
        lines = text.split("\n")
        line_tokens = [tokens(line) for line in lines]
        text_tokens = tuple(chain.from_iterable(line_tokens))
        parts = {text_tokens, *line_tokens} - {()}
        for part in parts:
            yield from ((problem, "same") for problem in self.by_tokens.get(part, ()))
        yield from ((problem, "part") for problem in self.long_questions_inside(text_tokens))
        for part in {letters_and_digits(text), *map(letters_and_digits, lines)} - {""}:
            yield from ((problem, "near") for problem in self.by_letters.get(part, ()))
        yield from self.reworded.matches_in(text_tokens, parts)

    def long_questions_inside(self, text: Tokens) -> Iterator[Problem]:
        """Yield the problems whose questions have at least LONG tokens and are part of a text."""
        for i in range(len(text) - LONG + 1):
            if text[i] in self.first_tokens:
                for question, problem in self.by_start.get(text[i : i + LONG], ()):
                    if text[i : i + len(question)] == question:
                        yield problem


def read_texts(path: Path) -> list[list[str]]:
    """Return all strings of each row of a .jsonl, .json (a list), .parquet or .txt file.

    All formats but .parquet may be gzipped.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: the content does not fit the file's extension.
    """
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return [list(strings(row)) for row in READERS.get(kind, object_rows)(path)]


def parquet_rows(path: Path) -> list[object]:
    """Return the rows of a Parquet file as dictionaries.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: it is not a Parquet file.
    """
    import pandas  # only this format needs it

    try:
        return [*pandas.read_parquet(path).to_dict("records")]
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DamagedFile(f"{path}: not a Parquet file ({error})") from None


def list_rows(path: Path) -> list[object]:
    """Return the items of a JSON list.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: it is not a JSON list.
    """
    try:
        rows: object = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not JSON ({error}), expected a list") from None
    if not isinstance(rows, list):
        raise DamagedFile(f"{path}: {type(rows).__name__}, expected a list")
    return cast(list[object], rows)


def object_rows(path: Path) -> list[object]:
    """Return the objects of a file of JSON lines."""
    return [row for _, row in json_lines(path)]


def text_rows(path: Path) -> list[object]:
    """Return the lines of a text file.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: it cannot be read as text.
    """
    return [*read_text(path).split("\n")]


READERS = {".parquet": parquet_rows, ".json": list_rows, ".txt": text_rows}  # else JSON lines


def strings(row: object) -> Iterator[str]:
    """Yield every string inside nested lists and mappings; keys of mappings are left out."""
    if isinstance(row, str):
        yield row
    elif isinstance(row, dict):
        for inner in cast(dict[object, object], row).values():
            yield from strings(inner)
    elif isinstance(row, Iterable):
        for inner in cast(Iterable[object], row):
            yield from strings(inner)
