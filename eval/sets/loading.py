"""Reads problems from JSON lines and from public data sets, and checks every row."""

import hashlib
import json
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, get_args

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import JsonFields, answer_text, as_answer, json_lines
from eval.sets.problem import Answers, Counts, Problem

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
REQUIRED = ("id", "question", "answer", "language")
OPTIONAL: dict[str, type] = {"solution": str, "level": int, "subject": str, "exact_form": bool}
Row: TypeAlias = JsonFields  # of a foreign data set


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub and the function that converts one of its rows.

    `row` takes a row and the id of the problem to return.
    """

    id: str
    config: str | None
    row: Callable[[Row, str], Problem]


def read_problems(path: Path) -> list[Problem]:
    """Return the problems of a file of JSON lines.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: a line is not a problem; the message names the file, the line and the key.
    """
    try:
        problems = [to_problem(row, f"{path}, line {number}") for number, row in json_lines(path)]
    except MissingFile:
        raise MissingFile(
            f"{path}: no such file; "
            "expected DIR/<benchmark>/<split>.jsonl, DIR from REPRO_DATA (or --data, where it is)"
        ) from None
    ids = [p.id for p in problems]
    if len(set(ids)) < len(ids):
        repeated_id = next(i for i in ids if ids.count(i) > 1)
        raise DamagedFile(f"{path}: id {repeated_id!r} occurs twice; ids are unique within a file")
    return problems


def to_problem(row: Row, where: str) -> Problem:
    """Return one row of a problem file as a problem, with a numeric answer converted to text.

    `where` is the file and line of the row, for error messages.

    Raises:
        DamagedFile: a key is missing, empty or of another type.
    """
    fields = {**row, "answer": answer_text(row.get("answer"), where)}
    check_types(fields, where)
    if fields["language"] not in LANGUAGES:
        languages = ", ".join(LANGUAGES)
        raise DamagedFile(
            f"{where}: 'language': expected one of {languages}, got {fields['language']!r:.80}"
        )
    names = (key for key in (*REQUIRED, *OPTIONAL) if fields.get(key) is not None)
    return Problem(**{key: fields[key] for key in names})


def check_types(fields: Row, where: str) -> None:
    """Check that required fields are non-empty strings and optional ones of their types.

    Raises:
        DamagedFile: with the first field that is not.
    """
    for key in REQUIRED:
        if not isinstance(fields.get(key), str) or not fields[key].strip():
            actual = repr(fields[key])[:80] if key in fields else "nothing"
            raise DamagedFile(f"{where}: {key!r}: expected a non-empty string, got {actual}")
    for key, kind in OPTIONAL.items():
        field = fields.get(key)
        if field is not None and type(field) is not kind:
            raise DamagedFile(f"{where}: {key!r}: expected {kind.__name__}, got {field!r:.80}")


def read_subset(path: Path, problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems whose ids a text file lists, one a line, in the order of the file.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: no problem has one of the ids.
    """
    try:
        ids = path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        raise MissingFile(
            f"{path}: no such file; expected the ids of the set, one a line"
        ) from None
    by_id = {problem.id: problem for problem in problems}
    unknown_ids = [key for key in ids if key not in by_id]
    if unknown_ids:
        raise DamagedFile(f"{path}: {unknown_ids[0]!r} is the id of no problem beside it")
    return [by_id[key] for key in ids]


def with_answers(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """Add the reference answers of a file of JSON lines to the problems that the file names.

    A line has `id`, `mode` (`all`, `any`, `first` or `last`: which boxes count), `answers` and
    `last_box`, which must equal the problem's own answer. If the file does not exist, the problems
    are returned unchanged.

    Raises:
        DamagedFile: a line has another form or does not fit its problem.
    """
    by_id = {problem.id: problem for problem in problems}
    for number, row in json_lines(path) if path.exists() else ():
        try:
            by_id[row["id"]] = replace_answers(by_id[row["id"]], row)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFile(
                f"{path}, line {number}: {type(error).__name__} {error}; expected an object with "
                f"the id of a problem beside it, mode ({', '.join(get_args(Counts))}), answers, "
                "and as last_box the answer of that problem"
            ) from None
    return list(by_id.values())


def replace_answers(problem: Problem, row: Row) -> Problem:
    """Return the problem with the reference answers of a row, see `with_answers`.

    Raises:
        ValueError: the row's mode, answers or last box do not fit the problem.
    """
    answers, counts = [as_answer(answer) for answer in row["answers"]], row["mode"]
    texts = tuple(text for text in answers if text is not None)
    fits_mode = len(texts) > 1 if counts in ("all", "any") else len(texts) == 1
    if counts not in get_args(Counts) or not fits_mode or None in answers:
        raise ValueError(f"mode {counts!r:.80} with answers {row['answers']!r:.80}")
    if as_answer(row["last_box"]) != problem.answer:
        raise ValueError(f"last_box {row['last_box']!r:.80}, its answer is {problem.answer!r:.80}")
    answer = ", ".join(texts) if counts == "all" else texts[0]
    return replace(problem, answer=answer, answers=Answers(texts, counts))


def content_digest(problems: Iterable[Problem]) -> str:
    """Return the SHA-256 of all questions and answers, independent of their order and ids."""
    pairs = sorted((p.question, p.answer) for p in problems)
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()


def load_hub(name: str, hub: Hub, split: str = "test") -> list[Problem]:
    """Load the problems of a public data set, through `datasets` and its cache.

    Raises:
        MissingFile: the hub cannot be reached and the data set is not in the cache, or it cannot
            be read: a file is damaged, or the data set is distributed as a program.
    """
    place = "give a folder in REPRO_DATA (or --data, where it is)"
    return map_rows(name, hub, hub_rows(name, hub.id, hub.config, split, place), split)


def hub_rows(name: str, dataset: str, config: str | None, split: str, place: str) -> Iterable[Row]:
    """Return the rows of a data set of the hub; messages about connection retries are hidden.

    `name`, our name of the data set, and `place`, another place to read it from, are for the error
    message.

    Raises:
        MissingFile: see `load_hub`.
    """
    from datasets import load_dataset  # a heavy import that a local folder never needs
    from datasets.exceptions import DatasetsError

    try:
        with quiet_hub():
            return load_dataset(dataset, config, split=split)  # pyright: ignore[reportReturnType] - a split is given: it is a Dataset
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        message = " ".join(str(error).split())
        raise MissingFile(
            f"{name}: cannot load {dataset} from the hub "
            f"({type(error).__name__}: {message}); {place}"
        ) from error


@contextmanager
def quiet_hub() -> Generator[None]:
    """Hide the hub client's warnings about retries; the caller reports a final failure."""
    from huggingface_hub.utils import logging  # heavy, as above

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def map_rows(name: str, hub: Hub, rows: Iterable[Row], split: str) -> list[Problem]:
    """Convert the rows of a data set to problems with the ids `<name>-<split>-<index>`.

    Raises:
        DamagedFile: a row cannot be converted; the message names its columns.
    """
    problems: list[Problem] = []
    for index, row in enumerate(rows):
        try:
            problem = hub.row(row, f"{name}-{split}-{index}")
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(
                f"{hub.id}, {split}, row {index}: {type(error).__name__} {error}; "
                f"its columns are {sorted(row)}"
            ) from None
        answer = answer_text(problem.answer, f"{hub.id}, {split}, row {index}")
        problems.append(replace(problem, answer=answer))
    return problems


def gsm8k_row(row: Row, key: str) -> Problem:
    """Convert a row of openai/gsm8k: the answer follows `####`, its commas are removed."""
    solution, mark, answer = str(row["answer"]).rpartition("####")
    if not mark:
        raise ValueError(f"no '####' in {solution[:80]!r}")
    return Problem(
        id=key,
        question=row["question"],
        answer=answer.strip().replace(",", ""),
        solution=row["answer"],
    )


def math_row(row: Row, key: str) -> Problem:
    """Convert a row of MATH: the answer is the solution's last box, the level "Level 5" is 5."""
    from eval.grading.boxes import last_box  # the same reading as of a model's box

    box = last_box(row["solution"])
    level = str(row["level"]).removeprefix("Level").strip()
    return Problem(
        id=key,
        question=row["problem"],
        answer=(box.text if box else None) or "",
        solution=row["solution"],
        level=int(level) if level.isdecimal() else None,
        subject=row["type"],
    )


def math500_row(row: Row, key: str) -> Problem:  # noqa: ARG001 - a row of a Hub
    """Convert a row of HuggingFaceH4/MATH-500; `unique_id` is the id that MATH itself uses."""
    return Problem(
        id=row["unique_id"],
        question=row["problem"],
        answer=row["answer"],
        solution=row["solution"],
        level=int(row["level"]),
        subject=row["subject"],
    )


def contest_row(row: Row, key: str) -> Problem:
    """Convert a row of math-ai/aime24, aime25 or amc23.

    The question is in `problem` or `question`, the answer in `answer` or in the last box of
    `solution`.
    """
    from eval.grading.boxes import last_box

    box = None if "answer" in row else last_box(row["solution"])
    answer = str((box.text if box else row.get("answer")) or "").strip()
    return Problem(
        id=key,
        question=row["problem"] if "problem" in row else row["question"],
        answer=answer.removesuffix(".0"),
    )


def mgsm_row(row: Row, key: str, *, language: str) -> Problem:
    """Convert a row of juletxara/mgsm; the answer is the integer column `answer_number`."""
    answer = str(int(row["answer_number"]))
    return Problem(id=key, question=row["question"], answer=answer, language=language)


def cmath_row(row: Row, key: str) -> Problem:
    """Convert a row of weitianwen/cmath: the answer is `golden`, the level the school `grade`."""
    return Problem(
        id=key,
        question=row["question"],
        answer=str(row["golden"]).strip().replace(",", ""),
        level=int(row["grade"]),
        language="zh",
    )


MGSM_ROWS = {language: partial(mgsm_row, language=language) for language in LANGUAGES}
