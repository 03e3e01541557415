"""What the grader reads and says about one output."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Extraction:
    """The answer's text, or None, and the rule that found it; `parts` when it is several boxes."""

    text: str | None
    rule: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Is the output right, what was read as its answer, and why.

    `correct` is None when no verdict could be reached (the deadline passed, or the worker ended).
    `rule` says where the answer was found: `boxed`, `phrase`, `output` (of a program),
    `last formula`, `last number`, `pattern` (of the benchmark), `none`; or why there is no
    verdict: `timeout`, `error`.
    `reason` says how the two answers were compared.
    """

    correct: bool | None
    extracted: str | None
    rule: str
    reason: str
