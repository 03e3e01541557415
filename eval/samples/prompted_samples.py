"""Graded samples with prompts and references: the rows of `repro eval --out` and of pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from eval.errors import BadValue, DamagedFile
from eval.json_lines import json_lines
from eval.samples.store import TYPES, Sample
from eval.sets.problem import Problem

S = TypeVar("S", bound=Sample)


@dataclass(frozen=True, kw_only=True)
class PromptedSample(Sample):
    """A sample with its user turn, reference answer, and level and subject of the problem.

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
    """Return each sample with the user turn and the reference answer of its problem.

    Raises:
        BadValue: a sample belongs to no problem.
    """
    sizes = prompt_tokens or [0] * len(prompts)
    questions = {
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
        return [
            PromptedSample(
                **{name: getattr(sample, name) for name in TYPES}, **questions[sample.id]
            )
            for sample in samples
        ]
    except KeyError as error:
        raise BadValue(f"a sample of the unknown problem {error}") from None


def read_graded(path: Path, kind: type[S] = Sample) -> list[S]:
    """Read samples from a JSONL file, gzipped or not; fields that `kind` lacks are ignored.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: a row is not a graded sample; the message has the line and the reason.
    """
    return [to_kind(row, kind, f"{path}, line {number}") for number, row in json_lines(path)]


def to_kind(row: Mapping[str, Any], kind: type[S], where: str) -> S:
    """Return a row as a sample of a kind.

    Raises:
        DamagedFile: a field is missing or of another type.
    """
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    if missing := [name for name in needed if name not in row]:
        raise DamagedFile(
            f"{where}: no {', '.join(missing)}: expected a graded sample, as "
            "`repro eval --out` or `repro score --per-sample` write them"
        )
    present = {field.name: row[field.name] for field in fields(kind) if field.name in row}
    for name, value in present.items():
        if type(value) not in KINDS[name]:
            expected = " or ".join(allowed.__name__ for allowed in KINDS[name])
            raise DamagedFile(f"{where}: {name}={value!r:.80}: expected {expected}")
    return kind(**present)
