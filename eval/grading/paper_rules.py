r"""Grades by DeepSeekMath's published rules, for comparison with reported scores.

Two numbers are equal within 0.001, also if one is 100 times the other; the brackets of tuples are
ignored, equations are compared as differences, and other answers with sympy's LaTeX parser, which
parses the longest prefix of a text that it can. An answer that it cannot parse was evaluated as
Python there; here it is not equal. Source: deepseek-ai/DeepSeek-Math,
`evaluation/eval/eval_script.py` and `eval_utils.py`.
"""

import re
from collections.abc import Callable, Sequence
from math import isclose

from eval.grading.limited import each_limited
from eval.grading.paper_extraction import (
    Part,
    extract_as_paper,
    raw_answers,
    split_answers,
    zero_shot,
)
from eval.grading.verdict import Verdict
from eval.grading.worker import Outcome, compare_all
from eval.sets.problem import Problem

TOLERANCE = 1e-3
Symbolic = Callable[[str, str], bool]  # (prediction, gold)
BRACKETS = re.compile(r"[(\[].+[)\]]")
MATRIX = re.compile(r"\\begin\{[pb]matrix\}(.*)\\end\{[pb]matrix\}", re.DOTALL)


class NeedsParser(Exception):
    """Raised if strings and numbers alone do not decide whether two answers are equal."""


def grade_as_paper(
    outputs: Sequence[str],
    problems: Sequence[Problem],
    *,
    listed: bool,
    part: Part = "answer",
) -> list[Verdict]:
    """Return the paper's verdict on each output; `listed` for MATH, where every box is an answer.

    `part="program"` grades the output of the last program: the paper's `program_accuracy`.

    Raises:
        ValueError: if there are not as many problems as outputs.
    """
    golds = [gold_answers(problem, listed=listed) for problem in problems]
    tasks = [
        (output, gold, problem.language, problem.question, listed, part)
        for output, gold, problem in zip(outputs, golds, problems, strict=True)
    ]
    unread: list[str] = []
    readings: list[tuple[list[str], str, Outcome | None]] = [
        (unread, reading, reading) if isinstance(reading, str) else reading
        for reading in each_limited(read_as_paper, tasks, tuple)
    ]
    slow = [(gold, r[0]) for gold, r in zip(golds, readings, strict=True) if r[2] is None]
    outcomes = iter(compare_all(slow, rules="paper"))
    return [
        paper_verdict(predictions, rule, next(outcomes), "its LaTeX parser")
        if outcome is None
        else paper_verdict(predictions, rule, outcome, "the paper's text and number rules")
        for predictions, rule, outcome in readings
    ]


def paper_verdict(predictions: list[str], rule: str, outcome: Outcome, method: str) -> Verdict:
    """Return the verdict of an outcome; `method` is the kind of comparison that decided it."""
    correct = outcome if isinstance(outcome, bool) else None
    reason = f"{'equal' if correct else 'not equal'} by {method}"
    if correct is None:
        reason = "no verdict within the deadline; the paper counts it as wrong"
    return Verdict(correct, "; ".join(predictions) or None, rule, reason)


def read_as_paper(
    output: str, gold: list[str], language: str, question: str, listed: bool, part: Part
) -> tuple[list[str], str, Outcome | None]:
    """Return the answers of an output, their rule, and whether they are right; None if undecided.

    `compare_without_parser` decides the third.
    """
    predictions, rule = extract_as_paper(output, part, listed=listed, language=language)
    if listed and part != "program":
        predictions = split_answers(predictions, question)
    return predictions, rule, compare_without_parser(gold, predictions)


def gold_answers(problem: Problem, *, listed: bool) -> list[str]:
    """Return the reference: every box of MATH's solution, else the answer without its commas."""
    if not listed:
        return [problem.answer.replace(",", "")]
    solution = problem.solution or ""
    boxed = raw_answers(solution)[1] == "boxed"
    answers = zero_shot(solution if boxed else rf"\boxed{{{problem.answer}}}")[0]
    return split_answers(answers, problem.question)


def compare_without_parser(golds: list[str], predictions: list[str]) -> bool | None:
    """Return whether the predictions are right; None if a formula has to be parsed."""
    try:
        return same_lists(golds, predictions, missing_parser)
    except NeedsParser:
        return None


def missing_parser(prediction: str, gold: str) -> bool:
    """Raise NeedsParser in place of comparing two formulas."""
    raise NeedsParser(prediction, gold)


def same_lists(golds: Sequence[str], predictions: Sequence[str], symbolic: Symbolic) -> bool:
    """Return whether every gold equals some prediction and every prediction some gold.

    Duplicates are dropped first. If there are more predictions than golds, the last ones count.
    """
    distinct_golds = list(dict.fromkeys(golds))
    distinct = list(dict.fromkeys(predictions))[-len(distinct_golds) :]
    return all_have_partners(distinct, distinct_golds, symbolic)


def all_have_partners(predictions: Sequence[str], golds: Sequence[str], symbolic: Symbolic) -> bool:
    """Return whether every prediction equals some gold and every gold some prediction."""
    if not predictions:
        return False
    table = [[same_answer(text, gold, symbolic) for gold in golds] for text in predictions]
    return all(any(row) for row in table) and all(
        any(column) for column in zip(*table, strict=True)
    )


def same_answer(prediction: str, gold: str, symbolic: Symbolic) -> bool:
    """Return whether two answers are equal; unions are compared piece by piece."""
    if r"\cup" in prediction and r"\cup" in gold:
        return all_have_partners(prediction.split(r"\cup"), gold.split(r"\cup"), symbolic)
    a, b = as_float(prediction), as_float(gold)
    close = a is not None and b is not None and abs(a - b) < TOLERANCE
    return close or same_math(prediction, gold, symbolic)


def same_math(prediction: str, gold: str, symbolic: Symbolic) -> bool:
    """Return whether two texts are equal as text, number, tuple, matrix, equation or formula.

    Numbers are compared up to a factor of 100.
    """
    if prediction == gold:
        return True
    a, b = as_number(prediction), as_number(gold)
    if a is not None and b is not None:
        return any(isclose(x, a, abs_tol=TOLERANCE) for x in (b / 100, b, b * 100))
    prediction, gold = prediction.strip(), gold.strip()
    if not prediction:
        return False
    if same_parts(prediction, gold, symbolic) or same_matrix(prediction, gold, symbolic):
        return True
    return same_equation(prediction, gold, symbolic) or symbolic(prediction, gold)


def as_float(text: str) -> float | None:
    """Return the float that Python reads from a text without its commas; None for other texts."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def as_number(text: str) -> float | None:
    """Return a float, or a percentage as a fraction of 1; None for other texts."""
    number = as_float(text)
    if number is None and text.endswith("%"):
        share = as_float(text.removesuffix("%").removesuffix("\\"))
        return None if share is None else share / 100
    return number


def same_parts(prediction: str, gold: str, symbolic: Symbolic) -> bool:
    """Return whether two bracketed lists have equal parts; the kinds of brackets are ignored."""
    if not (BRACKETS.match(prediction) and BRACKETS.match(gold)):
        return False
    return same_row(prediction[1:-1].split(","), gold[1:-1].split(","), symbolic)


def same_row(prediction: Sequence[str], gold: Sequence[str], symbolic: Symbolic) -> bool:
    """Return whether two lists of parts are of one length and equal in order."""
    return len(prediction) == len(gold) and all(
        same_math(a, b, symbolic) for a, b in zip(prediction, gold, strict=True)
    )


def same_matrix(prediction: str, gold: str, symbolic: Symbolic) -> bool:
    """Return whether two `pmatrix` or `bmatrix` environments are equal cell by cell."""
    matches = MATRIX.fullmatch(prediction), MATRIX.fullmatch(gold)
    if not (matches[0] and matches[1]):
        return False
    a, b = ([row.strip() for row in m[1].split(r"\\") if row.strip()] for m in matches if m)
    return len(a) == len(b) and all(
        same_row(x.split("&"), y.split("&"), symbolic) for x, y in zip(a, b, strict=True)
    )


def same_equation(prediction: str, gold: str, symbolic: Symbolic) -> bool:
    """Return whether two equations have equal differences of their sides, up to the sign.

    `x = 5` also equals 5 if the left side has at most two characters.
    """
    sides, gold_sides = prediction.split("="), gold.split("=")
    if len(sides) == len(gold_sides) == 2:
        a, b = (f"{s[0].strip()} - ({s[1].strip()})" for s in (sides, gold_sides))
        return symbolic(a, b) or symbolic(f"-({a})", b)
    if len(sides) == 2 and len(gold_sides) == 1 and len(sides[0].strip()) <= 2:
        return same_math(sides[1], gold, symbolic)
    if len(gold_sides) == 2 and len(sides) == 1 and len(gold_sides[0].strip()) <= 2:
        return same_math(prediction, gold_sides[1], symbolic)
    return False
