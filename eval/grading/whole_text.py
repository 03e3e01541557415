"""math-verify on whole texts, as TRL's accuracy rewards read them, in a worker with a deadline."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal  # math-verify has no types

from eval.grading.extraction import extract
from eval.grading.parts import stated_spans
from eval.grading.placeholders import without_requests
from eval.grading.worker import ask_all

Reading = tuple[bool | None, str, str]  # None: the solution holds no answer; what was read of each


@dataclass(frozen=True)
class TextVerdict:
    """Whether a text's answer is its solution's, None if undecided, and what was read of both."""

    correct: bool | None
    solution: str
    answer: str


LATE = TextVerdict(None, "[timeout]", "[timeout]")
UNDECIDED = {"timeout": LATE, "error": TextVerdict(None, "[undecided]", "[undecided]")}


def verify_texts(
    solutions: Sequence[str], texts: Sequence[str], rules: Literal["texts", "outputs"] = "texts"
) -> list[TextVerdict]:
    """The verdict on each text; None too where there is none within the deadline.

    Of `outputs`, the answer is read outside of the reasoning.
    """
    outcomes = ask_all(list(zip(solutions, texts, strict=True)), rules)
    return [UNDECIDED[o] if isinstance(o, str) else TextVerdict(*o) for o in outcomes]


def stated_text(output: str) -> str:
    r"""Return the answer of an output with reasoning or a recited request, as a `\boxed{}`.

    An output without either is returned as it is, and one that gives no answer as an empty text.
    """
    if stated_spans(output) == [(0, len(output))] and without_requests(output)[0] == output:
        return output
    answer = extract(output).text
    return "" if answer is None else rf"\boxed{{{answer}}}"


def compare_outputs(solution: str, output: str) -> Reading:
    """Runs in the worker: `compare_texts` of the answer that an output states."""
    return compare_texts(solution, stated_text(output))


def compare_texts(solution: str, text: str) -> Reading:
    """Runs in the worker: the solution is read in any way, the text by its LaTeX alone."""
    library: Any = import_module("math_verify")  # slow, and only the worker needs it
    normal: Any = import_module("latex2sympy2_extended").NormalizationConfig
    gold = library.parse(solution, parsing_timeout=None)
    if not gold:
        return None, "[unparseable]", "[skipped]"
    latex = library.LatexExtractionConfig(
        normalization_config=normal(units=True),
        boxed_match_priority=0,  # a box goes before any other formula
        try_extract_without_anchor=False,
    )
    answer = library.parse(text, [latex], extraction_mode="first_match", parsing_timeout=None)
    right = bool(library.verify(gold, answer, timeout_seconds=None))
    return right, str(gold), str(answer) if answer else "[unparseable]"
