"""Reads problems from JSON lines and from public data sets, and refuses what is not a problem."""

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args  # rows of foreign data sets have no static type

from eval.errors import DamagedFile, MissingFile
from eval.json_lines import answer_text, as_answer, json_lines
from eval.sets.problem import Answers, Counts, Problem

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
REQUIRED = ("id", "question", "answer", "language")
OPTIONAL: dict[str, type] = {"solution": str, "level": int, "subject": str, "exact_form": bool}
BOXED = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub and how one of its rows becomes a problem."""

    id: str
    config: str | None
    row: Callable[[Mapping[str, Any], str], Problem]  # (row, our id)


def read_problems(path: Path) -> list[Problem]:
    """Return the problems of a file of JSON lines.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: a line is not a problem; names the file, the line and the key.
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
        twice = next(i for i in ids if ids.count(i) > 1)
        raise DamagedFile(f"{path}: id {twice!r} occurs twice; ids are unique within a file")
    return problems


def to_problem(row: Mapping[str, Any], where: str) -> Problem:
    """Return one row of a problem file as a problem; an answer that is a number becomes its text.

    Raises:
        DamagedFile: a key is missing, empty or of another type.
    """
    given = {**row, "answer": answer_text(row.get("answer"), where)}
    for key in REQUIRED:
        if not isinstance(given.get(key), str) or not given[key].strip():
            found = repr(given[key])[:80] if key in given else "nothing"
            raise DamagedFile(f"{where}: {key!r}: expected a non-empty string, got {found}")
    for key, kind in OPTIONAL.items():
        value = given.get(key)
        if value is not None and type(value) is not kind:
            raise DamagedFile(f"{where}: {key!r}: expected {kind.__name__}, got {value!r:.80}")
    if given["language"] not in LANGUAGES:
        known_ones = ", ".join(LANGUAGES)
        raise DamagedFile(
            f"{where}: 'language': expected one of {known_ones}, got {given['language']!r:.80}"
        )
    names = (key for key in (*REQUIRED, *OPTIONAL) if given.get(key) is not None)
    known: dict[str, Any] = {key: given[key] for key in names}
    return Problem(**known)


def read_subset(path: Path, problems: Iterable[Problem]) -> list[Problem]:
    """The problems whose ids a file lists, one a line, in its order.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: an id that no problem has.
    """
    try:
        ids = path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        raise MissingFile(
            f"{path}: no such file; expected the ids of the set, one a line"
        ) from None
    known = {problem.id: problem for problem in problems}
    strangers = [key for key in ids if key not in known]
    if strangers:
        raise DamagedFile(f"{path}: {strangers[0]!r} is the id of no problem beside it")
    return [known[key] for key in ids]


def with_answers(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """The problems, those named in a file of JSON lines with all that counts for them.

    A line has `id`, `mode` (`all`, `any`, `first` or `last`: which boxes count), `answers` and
    `last_box`, the answer that the problem has without it. No such file: the problems as they are.

    Raises:
        DamagedFile: a line of another form, or one that does not fit its problem.
    """
    known = {problem.id: problem for problem in problems}
    for number, row in json_lines(path) if path.exists() else ():
        try:
            known[row["id"]] = answered(known[row["id"]], row)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFile(
                f"{path}, line {number}: {type(error).__name__} {error}; expected an object with "
                f"the id of a problem beside it, mode ({', '.join(get_args(Counts))}), answers, "
                "and as last_box the answer of that problem"
            ) from None
    return list(known.values())


def answered(problem: Problem, row: Mapping[str, Any]) -> Problem:
    """The problem with the answers of a row."""
    found, counts = [as_answer(answer) for answer in row["answers"]], row["mode"]
    texts = tuple(text for text in found if text is not None)
    enough = len(texts) > 1 if counts in ("all", "any") else len(texts) == 1
    if counts not in get_args(Counts) or not enough or None in found:
        raise ValueError(f"mode {counts!r:.80} with answers {row['answers']!r:.80}")
    if as_answer(row["last_box"]) != problem.answer:
        raise ValueError(f"last_box {row['last_box']!r:.80}, its answer is {problem.answer!r:.80}")
    answer = ", ".join(texts) if counts == "all" else texts[0]
    return replace(problem, answer=answer, answers=Answers(texts, counts))


def content_digest(problems: Iterable[Problem]) -> str:
    """SHA-256 of all questions and answers, whatever their order and their ids."""
    pairs = sorted((p.question, p.answer) for p in problems)
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()


def load_hub(name: str, hub: Hub, split: str = "test") -> list[Problem]:
    """The problems of a public data set, through `datasets` and its cache.

    Raises:
        MissingFile: the hub cannot be reached and the data set is not in the cache, or it cannot
            be read: a file is damaged, or it comes as a program.
    """
    place = "give a folder in REPRO_DATA (or --data, where it is)"
    return map_rows(name, hub, hub_rows(name, hub.id, hub.config, split, place), split)


def hub_rows(
    name: str, dataset: str, config: str | None, split: str, place: str
) -> Iterable[Mapping[str, Any]]:
    """The rows of a data set of the hub; `place` says where else `name` may lie.

    Raises:
        MissingFile: see `load_hub`. Of the tries to reach the hub nothing is said but this.
    """
    from datasets import load_dataset  # a heavy import that a local folder never needs
    from datasets.exceptions import DatasetsError

    try:
        with quiet_hub():
            return load_dataset(dataset, config, split=split)  # pyright: ignore[reportReturnType] - a split is given: it is a Dataset
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        said = " ".join(str(error).split())
        raise MissingFile(
            f"{name}: cannot load {dataset} from the hub ({type(error).__name__}: {said}); {place}"
        ) from error


@contextmanager
def quiet_hub() -> Generator[None]:
    """Say nothing of the tries to reach the hub: what comes of them is said by whoever asks."""
    from huggingface_hub.utils import logging  # heavy, as above

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def map_rows(name: str, hub: Hub, rows: Iterable[Mapping[str, Any]], split: str) -> list[Problem]:
    """Each row as a problem with the id `<name>-<split>-<index>`."""
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


def gsm8k_row(row: Mapping[str, Any], key: str) -> Problem:
    """openai/gsm8k: the answer follows `####`, commas removed."""
    solution, mark, answer = str(row["answer"]).rpartition("####")
    if not mark:
        raise ValueError(f"no '####' in {solution[:80]!r}")
    return Problem(
        id=key,
        question=row["question"],
        answer=answer.strip().replace(",", ""),
        solution=row["answer"],
    )


def math_row(row: Mapping[str, Any], key: str) -> Problem:
    """MATH: the answer is the content of the solution's last box; the level is `Level 5`."""
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


def math500_row(row: Mapping[str, Any], key: str) -> Problem:  # noqa: ARG001 - a row of a Hub
    """HuggingFaceH4/MATH-500: `unique_id` is the file name that the whole of MATH has as id."""
    return Problem(
        id=row["unique_id"],
        question=row["problem"],
        answer=row["answer"],
        solution=row["solution"],
        level=int(row["level"]),
        subject=row["subject"],
    )


def contest_row(row: Mapping[str, Any], key: str) -> Problem:
    """math-ai/aime24, aime25, amc23: `problem` or `question`; `answer`, or a boxed `solution`."""
    from eval.grading.boxes import last_box

    box = None if "answer" in row else last_box(row["solution"])
    answer = str((box.text if box else row.get("answer")) or "").strip()
    return Problem(
        id=key,
        question=row["problem"] if "problem" in row else row["question"],
        answer=answer.removesuffix(".0"),
    )


def mgsm_row(row: Mapping[str, Any], key: str, *, language: str) -> Problem:
    """juletxara/mgsm: an integer column `answer_number`."""
    answer = str(int(row["answer_number"]))
    return Problem(id=key, question=row["question"], answer=answer, language=language)


def cmath_row(row: Mapping[str, Any], key: str) -> Problem:
    """weitianwen/cmath: `golden` is the answer, `grade` the school year."""
    return Problem(
        id=key,
        question=row["question"],
        answer=str(row["golden"]).strip().replace(",", ""),
        level=int(row["grade"]),
        language="zh",
    )


MGSM_ROWS = {language: partial(mgsm_row, language=language) for language in LANGUAGES}
