r"""Grades by DeepSeekMath's published rules, for comparison with reported numbers.

Two numbers are equal within 0.001, also after times or over 100; tuples ignore their brackets,
equations are differences, and the rest goes to sympy's LaTeX parser, which reads as much of a
text as it understands. What it does not understand was evaluated as Python there; here it is not
equal. Source: deepseek-ai/DeepSeek-Math, `evaluation/eval/eval_script.py` and `eval_utils.py`.
"""

import re
from collections.abc import Callable, Sequence
from math import isclose

from eval.grading.limited import each_limited
from eval.grading.paper_extraction import (
    Part,
    found_answers,
    raw_answers,
    split_answers,
    zero_shot,
)
from eval.grading.verdict import Verdict
from eval.grading.worker import Outcome, compare_all
from eval.sets.problem import Problem

TOLERANCE = 1e-3
Symbolic = Callable[[str, str], bool]  # (given, gold)
BRACKETS = re.compile(r"[(\[].+[)\]]")
MATRIX = re.compile(r"\\begin\{[pb]matrix\}(.*)\\end\{[pb]matrix\}", re.DOTALL)


class NeedsParser(Exception):
    """Strings and numbers alone do not decide."""


def grade_as_paper(
    outputs: Sequence[str],
    problems: Sequence[Problem],
    *,
    listed: bool,
    part: Part = "answer",
) -> list[Verdict]:
    """The paper's verdict on each output; `listed` for MATH, where every box is an answer.

    `part="program"` grades what the last program printed: the paper's `program_accuracy`.

    Raises:
        ValueError: if there are not as many problems as outputs.
    """
    golds = [gold_answers(problem, listed=listed) for problem in problems]
    tasks = [
        (output, gold, problem.language, problem.question, listed, part)
        for output, gold, problem in zip(outputs, golds, problems, strict=True)
    ]
    found = each_limited(read_as_paper, tasks, tuple)
    nothing: list[str] = []
    readings = [(nothing, one, one) if isinstance(one, str) else one for one in found]
    slow = [(gold, r[0]) for gold, r in zip(golds, readings, strict=True) if r[2] is None]
    outcomes = iter(compare_all(slow, rules="paper"))
    verdicts: list[Verdict] = []
    for given, rule, decided in readings:
        outcome = next(outcomes) if decided is None else decided
        correct = outcome if isinstance(outcome, bool) else None
        how = "the paper's text and number rules" if decided is not None else "its LaTeX parser"
        reason = f"{'equal' if correct else 'not equal'} by {how}"
        if correct is None:
            reason = "no verdict within the deadline; the paper counts it as wrong"
        verdicts.append(Verdict(correct, "; ".join(given) or None, rule, reason))
    return verdicts


def read_as_paper(
    output: str, gold: list[str], language: str, question: str, listed: bool, part: Part
) -> tuple[list[str], str, Outcome | None]:
    """The answers of an output, the rule that found them, and the verdict as by `quickly`."""
    given, rule = found_answers(output, part, listed=listed, language=language)
    if listed and part != "program":
        given = split_answers(given, question)
    return given, rule, quickly(gold, given)


def gold_answers(problem: Problem, *, listed: bool) -> list[str]:
    """The reference: for MATH every box of the solution, else the answer without commas."""
    if not listed:
        return [problem.answer.replace(",", "")]
    solution = problem.solution or ""
    boxed = raw_answers(solution)[1] == "boxed"
    found = zero_shot(solution if boxed else rf"\boxed{{{problem.answer}}}")[0]
    return split_answers(found, problem.question)


def quickly(golds: list[str], given: list[str]) -> bool | None:
    """The verdict where no formula has to be parsed, else None."""
    try:
        return same_lists(golds, given, needs_parser)
    except NeedsParser:
        return None


def needs_parser(given: str, gold: str) -> bool:
    """Stands for the parser where there is none."""
    raise NeedsParser(given, gold)


def same_lists(golds: Sequence[str], given: Sequence[str], symbolic: Symbolic) -> bool:
    """Each gold has a partner and the reverse: without doubles, the last `len(golds)` given."""
    wanted = list(dict.fromkeys(golds))
    return partnered(list(dict.fromkeys(given))[-len(wanted) :], wanted, symbolic)


def partnered(given: Sequence[str], golds: Sequence[str], symbolic: Symbolic) -> bool:
    """Does every text of one side equal some text of the other?"""
    if not given:
        return False
    table = [[same(text, gold, symbolic) for gold in golds] for text in given]
    return all(any(row) for row in table) and all(
        any(column) for column in zip(*table, strict=True)
    )


def same(given: str, gold: str, symbolic: Symbolic) -> bool:
    """One answer against one gold; unions are compared piece by piece."""
    if r"\cup" in given and r"\cup" in gold:
        return partnered(given.split(r"\cup"), gold.split(r"\cup"), symbolic)
    a, b = as_float(given), as_float(gold)
    close = a is not None and b is not None and abs(a - b) < TOLERANCE
    return close or same_math(given, gold, symbolic)


def same_math(given: str, gold: str, symbolic: Symbolic) -> bool:
    """Same text, numbers up to a factor of 100, or the same parts, equation or formula."""
    if given == gold:
        return True
    a, b = as_number(given), as_number(gold)
    if a is not None and b is not None:
        return any(isclose(x, a, abs_tol=TOLERANCE) for x in (b / 100, b, b * 100))
    given, gold = given.strip(), gold.strip()
    if not given:
        return False
    if same_parts(given, gold, symbolic) or same_matrix(given, gold, symbolic):
        return True
    return same_equation(given, gold, symbolic) or symbolic(given, gold)


def as_float(text: str) -> float | None:
    """What Python reads as a float once the commas are gone."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def as_number(text: str) -> float | None:
    """A float, or a percentage as its share of 1."""
    value = as_float(text)
    if value is None and text.endswith("%"):
        share = as_float(text.removesuffix("%").removesuffix("\\"))
        return None if share is None else share / 100
    return value


def same_parts(given: str, gold: str, symbolic: Symbolic) -> bool:
    """Two bracketed texts, compared from comma to comma; which brackets does not count."""
    if not (BRACKETS.match(given) and BRACKETS.match(gold)):
        return False
    return same_row(given[1:-1].split(","), gold[1:-1].split(","), symbolic)


def same_row(given: Sequence[str], gold: Sequence[str], symbolic: Symbolic) -> bool:
    """As many parts, equal in order."""
    return len(given) == len(gold) and all(
        same_math(a, b, symbolic) for a, b in zip(given, gold, strict=True)
    )


def same_matrix(given: str, gold: str, symbolic: Symbolic) -> bool:
    """Two `pmatrix` or `bmatrix`, cell by cell."""
    found = MATRIX.fullmatch(given), MATRIX.fullmatch(gold)
    if not (found[0] and found[1]):
        return False
    a, b = ([row.strip() for row in m[1].split(r"\\") if row.strip()] for m in found if m)
    return len(a) == len(b) and all(
        same_row(x.split("&"), y.split("&"), symbolic) for x, y in zip(a, b, strict=True)
    )


def same_equation(given: str, gold: str, symbolic: Symbolic) -> bool:
    """Two equations as differences, up to the sign; or `x = 5` against 5, by its right side."""
    sides, wanted = given.split("="), gold.split("=")
    if len(sides) == len(wanted) == 2:
        a, b = (f"{s[0].strip()} - ({s[1].strip()})" for s in (sides, wanted))
        return symbolic(a, b) or symbolic(f"-({a})", b)
    if len(sides) == 2 and len(wanted) == 1 and len(sides[0].strip()) <= 2:
        return same_math(sides[1], gold, symbolic)
    if len(wanted) == 2 and len(sides) == 1 and len(wanted[0].strip()) <= 2:
        return same_math(given, wanted[1], symbolic)
    return False
