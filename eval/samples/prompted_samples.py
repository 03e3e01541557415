"""Graded samples with what was asked: the rows that `repro eval --out` writes and a page shows."""

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from eval.errors import BadValue, DamagedFile, MissingFile
from eval.samples.store import TYPES, Sample
from eval.sets.problem import Problem

S = TypeVar("S", bound=Sample)


@dataclass(frozen=True, kw_only=True)
class PromptedSample(Sample):
    """A sample with its user turn, the reference answer and what is known of the problem.

    `prompt_tokens` is 0 if unknown; `paper_correct` is the verdict by the paper's own rules, None
    without one, and `paper_reason` says why.
    """

    prompt: str
    answer: str
    prompt_tokens: int = 0
    paper_correct: bool | None = None
    paper_reason: str = ""
    level: int | None = None
    subject: str | None = None


KINDS = TYPES | {
    "prompt": (str,),
    "answer": (str,),
    "prompt_tokens": (int,),
    "paper_correct": (bool, type(None)),
    "paper_reason": (str,),
    "level": (int, type(None)),
    "subject": (str, type(None)),
}


def with_questions(
    samples: Iterable[Sample],
    problems: Iterable[Problem],
    prompts: Sequence[str],
    prompt_tokens: Sequence[int] = (),
) -> list[PromptedSample]:
    """Each sample with its problem's user turn and reference answer.

    Raises:
        BadValue: a sample belongs to no problem.
    """
    sizes = prompt_tokens or [0] * len(prompts)
    known = {
        problem.id: {
            "prompt": prompt,
            "answer": problem.answer,
            "prompt_tokens": size,
            "level": problem.level,
            "subject": problem.subject,
        }
        for problem, prompt, size in zip(problems, prompts, sizes, strict=True)
    }
    try:
        return [PromptedSample(**asdict(sample), **known[sample.id]) for sample in samples]
    except KeyError as error:
        raise BadValue(f"a sample of the unknown problem {error}") from None


def read_graded(path: Path, kind: type[S] = Sample) -> list[S]:
    """The samples of a JSONL file, gzipped or not, whose rows may hold more than the `kind` has.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: with the line and what was expected there.
    """
    return [
        to_kind(line, kind, f"{path}, line {number}")
        for number, line in enumerate(read_lines(path), start=1)
        if line
    ]


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, gzipped or not.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: it is cut off, or no text.
    """
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        return text.decode("utf-8-sig").split("\n")
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such file") from None
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise DamagedFile(f"{path}: not a JSONL file, plain or .gz ({error})") from error


def to_kind(line: str, kind: type[S], where: str) -> S:
    """One line as a sample of a kind, every field present and of its type."""
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{where}: not JSON ({error})") from None
    names = [field.name for field in fields(kind)]
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    missing = [name for name in needed if name not in row] if isinstance(row, dict) else needed
    if missing:
        raise DamagedFile(
            f"{where}: no {', '.join(missing)}: expected a graded sample, as "
            "`repro eval --out` or `repro score --per-sample` write them"
        )
    given = [name for name in names if name in row]
    for name in given:
        if type(row[name]) not in KINDS[name]:
            expected = " or ".join(one.__name__ for one in KINDS[name])
            raise DamagedFile(f"{where}: {name}={row[name]!r:.80}: expected {expected}")
    return kind(**{name: row[name] for name in given})
