"""The answer that the grader extracts from an output, and its verdict."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Extraction:
    """The answer extracted from an output.

    `text` is None if there is no answer. `rule` names the rule that found it, see `Verdict`.
    `parts` are the contents of the boxes if the answer consists of several.
    """

    text: str | None
    rule: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The grade of an output, the answer extracted from it, and the reason.

    `correct` is None if no verdict was reached (the deadline passed, or the worker ended).
    `rule` names the rule that found the answer: `boxed`, `phrase`, `output` (of a program),
    `last formula`, `last number`, `pattern` (of the benchmark), `whole output`, `none`; or why
    there is no verdict: `timeout`, `error`.
    `reason` names the comparison that decided.
    """

    correct: bool | None
    extracted: str | None
    rule: str
    reason: str
