"""Applies math-verify to whole texts, as TRL's accuracy rewards do, in a worker with a deadline."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from eval.grading.extraction import extract
from eval.grading.parts import stated_spans
from eval.grading.placeholders import without_requests
from eval.grading.worker import ask_all

Reading = tuple[bool | None, str, str]  # the fields of a TextVerdict


@dataclass(frozen=True)
class TextVerdict:
    """The verdict on a text against a solution, and what math-verify parsed from both.

    `correct` is None if no verdict was reached or the solution has no answer.
    """

    correct: bool | None
    solution: str
    answer: str


LATE = TextVerdict(None, "[timeout]", "[timeout]")
UNDECIDED = {"timeout": LATE, "error": TextVerdict(None, "[undecided]", "[undecided]")}


def verify_texts(
    solutions: Sequence[str], texts: Sequence[str], rules: Literal["texts", "outputs"] = "texts"
) -> list[TextVerdict]:
    """Return the verdict on each text; `correct` is None if the deadline passed.

    With the rules "outputs", the answer is read outside of the reasoning.
    """
    outcomes = ask_all(list(zip(solutions, texts, strict=True)), rules)
    return [UNDECIDED[o] if isinstance(o, str) else TextVerdict(*o) for o in outcomes]


def stated_text(output: str) -> str:
    r"""Return the answer of an output with reasoning or a recited request, as a `\boxed{}`.

    An output with neither is returned unchanged; for one without an answer the text is empty.
    """
    if stated_spans(output) == [(0, len(output))] and without_requests(output)[0] == output:
        return output
    answer = extract(output).text
    return "" if answer is None else rf"\boxed{{{answer}}}"


def compare_outputs(solution: str, output: str) -> Reading:
    """Compare a solution with the stated answer of an output; runs in the worker."""
    return compare_texts(solution, stated_text(output))


def compare_texts(solution: str, text: str) -> Reading:
    """Compare the answers of a solution and a text; runs in the worker.

    The solution is parsed by all rules of math-verify, the text by those for LaTeX alone.
    """
    library = import_module("math_verify")  # slow, and only the worker needs it
    normalization = import_module("latex2sympy2_extended").NormalizationConfig
    gold = library.parse(solution, parsing_timeout=None)
    if not gold:
        return None, "[unparseable]", "[skipped]"
    latex = library.LatexExtractionConfig(
        normalization_config=normalization(units=True),
        boxed_match_priority=0,  # a box goes before any other formula
        try_extract_without_anchor=False,
    )
    answer = library.parse(text, [latex], extraction_mode="first_match", parsing_timeout=None)
    is_equal = bool(library.verify(gold, answer, timeout_seconds=None))
    return is_equal, str(gold), str(answer) if answer else "[unparseable]"
