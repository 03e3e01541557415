"""Graded samples as gzipped JSON lines: written atomically, read only when undamaged."""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eval.errors import BadValue, DamagedFile, MissingFile
from eval.grading import Verdict, grade_many
from eval.samples.transcripts import graded_part
from eval.sets.problem import Problem
from eval.whole_files import write_whole

ADVICE = "restore it from version control, or run the same command with --force to make it again"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A graded output; `correct` is None when the grader reached no verdict.

    `truncated` is None when it is not known whether a limit cut the output.
    """

    benchmark: str
    id: str
    sample: int
    output: str
    tokens: int
    truncated: bool | None
    extracted: str | None
    correct: bool | None
    rule: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Sealed(Sample):
    """A graded output whose text is shortened to what the grader needs to grade it again.

    `form` is that of the whole text: see `eval.samples.forms`.
    """

    form: list[int]


@dataclass(frozen=True, kw_only=True)
class Weighed(Sample):
    """A graded output with its log-probability under the policy, summed over its tokens, in nats.

    The distribution is the policy's own, at temperature 1 and without truncation.
    """

    logp: float


@dataclass(frozen=True, kw_only=True)
class Rated(Sample):
    """A graded output with the number that a reward model or verifier gave it; higher is better."""

    rm_score: float


def boxed_answer(answer: str | None) -> str:
    """Return the text that stands for the output of a sealed sample: its answer in a box."""
    return "" if answer is None else f"\\boxed{{{answer}}}"


TYPES: dict[str, tuple[type, ...]] = {
    "benchmark": (str,),
    "id": (str,),
    "sample": (int,),
    "output": (str,),
    "tokens": (int,),
    "truncated": (bool, type(None)),
    "extracted": (str, type(None)),
    "correct": (bool, type(None)),
    "rule": (str,),
    "reason": (str,),
}
KINDS: dict[str, tuple[type[Sample], tuple[type, ...]]] = {  # by the field that Sample lacks
    "form": (Sealed, (list,)),
    "logp": (Weighed, (float,)),
}


def to_lines(samples: Iterable[Sample]) -> bytes:
    """Return canonical JSON lines: sorted keys, no spaces, UTF-8, lone surrogates escaped."""
    lines: list[bytes] = []
    for sample in samples:
        row = asdict(sample)
        text = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        try:
            lines.append(text.encode() + b"\n")
        except UnicodeEncodeError:
            lines.append(json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return b"".join(lines)


def digest_of(samples: Iterable[Sample]) -> str:
    """Return the SHA-256 of the canonical lines of samples."""
    return hashlib.sha256(to_lines(samples)).hexdigest()


def write_samples(path: Path, samples: Iterable[Sample]) -> str:
    """Write a gzipped file, whole or not at all; return the SHA-256 of its JSON lines.

    Raises:
        OSError: the disk is full or not writable; an older file of that name is untouched.
    """
    content = to_lines(samples)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as stream:
        stream.write(content)
    write_whole(path, buffer.getvalue())
    return hashlib.sha256(content).hexdigest()


def read_content(path: Path, digest: str | None = None) -> bytes:
    """Return the uncompressed content of a file of samples, checked against a digest if given.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is truncated or altered.
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such samples file; {ADVICE}") from None
    except (EOFError, OSError, zlib.error) as error:
        raise DamagedFile(f"{path}: not a whole gzip file ({error}); {ADVICE}") from None
    actual = hashlib.sha256(content).hexdigest()
    if digest is not None and actual != digest:
        raise DamagedFile(f"{path}: digest {actual}, expected {digest}; {ADVICE}")
    return content


def read_samples(path: Path, digest: str | None = None) -> list[Sample]:
    """Return the samples of a gzipped file, checked against a digest if given.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is truncated, altered, or not of this format.
    """
    content = read_content(path, digest)
    if content and not content.endswith(b"\n"):
        raise DamagedFile(f"{path}: the last line is cut; {ADVICE}")
    lines = content.split(b"\n")[:-1]
    return [to_sample(line, f"{path}, line {i}") for i, line in enumerate(lines, start=1)]


def to_sample(line: bytes, where: str) -> Sample:
    """Return a JSON line as a sample.

    Raises:
        DamagedFile: the line is not JSON, or a field is missing, unknown or of another type.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{where}: not JSON ({error}); {ADVICE}") from None
    if not isinstance(row, dict):
        actual = type(row).__name__
        raise DamagedFile(f"{where}: expected the keys {[*TYPES]}, got {actual}; {ADVICE}")
    kind, types = kind_of(row)
    if row.keys() != types.keys():
        actual = sorted(row)
        raise DamagedFile(f"{where}: expected the keys {[*types]}, got {actual}; {ADVICE}")
    for key, kinds in types.items():
        if type(row[key]) not in kinds:
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise DamagedFile(f"{where}: {key}={row[key]!r:.80}: expected {expected}; {ADVICE}")
    return kind(**row)


def kind_of(row: Mapping[str, object]) -> tuple[type[Sample], dict[str, tuple[type, ...]]]:
    """Return the class of samples that a row is of, and the types of its fields."""
    for name, (kind, types) in KINDS.items():
        if name in row:
            return kind, TYPES | {name: types}
    return Sample, TYPES


Grader = Callable[[Sequence[str], Sequence[Problem]], list[Verdict]]


def grade_outputs(outputs: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
    """Return the verdict on each output, compared with the reference of its problem."""
    references = [problem.reference for problem in problems]
    return grade_many(outputs, references, [problem.language for problem in problems])


def regrade(
    samples: Sequence[Sample],
    problems: Iterable[Problem],
    mode: str = "cot",
    grade: Grader = grade_outputs,
) -> list[Sample]:
    """Return the samples with new verdicts on their stored outputs; needs no model.

    Raises:
        BadValue: a sample belongs to no problem.
    """
    problems_by_id = {problem.id: problem for problem in problems}
    strangers = sorted({s.id for s in samples} - problems_by_id.keys())
    if strangers:
        raise BadValue(
            f"{len(strangers)} samples of unknown problems, the first is {strangers[0]!r}: "
            "expected the benchmark's own problem ids"
        )
    outputs = [graded_part(sample.output, mode) for sample in samples]
    verdicts = grade(outputs, [problems_by_id[sample.id] for sample in samples])
    return [
        replace(s, extracted=v.extracted, correct=v.correct, rule=v.rule, reason=v.reason)
        for s, v in zip(samples, verdicts, strict=True)
    ]
