"""Judges a worked solution step by step."""

import ast
import re
from collections import Counter
from fractions import Fraction
from operator import add, mul, sub, truediv

OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}
ARITHMETIC = re.compile(r"[\d\s+\-*/().]{1,80}")
BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def step_verdicts(
    question: str, answer: str, output: str, solution: str | None = None
) -> list[tuple[int, bool]]:
    """(offset just after the step, is it right) for every line of `output` that is a step.

    A line is a step if it equates numbers or boxes an answer; a box is right if it holds `answer`.
    An equation is right if the right `solution` has it and it was not written before. Where no
    solution is known, it is right if all its numeric sides are equal and every number it starts
    from stands in the question or in an earlier step.
    """
    known = set(NUMBER.findall(question)) | ({"100"} if "%" in question else set())
    awaited = None if solution is None else Counter(solution.splitlines())
    verdicts, offset = [], 0
    for line in output.splitlines(keepends=True):
        offset += len(line)
        boxed = BOXED.search(line)
        if boxed:
            verdicts.append((offset, boxed.group(1).strip() == answer))
        elif "=" in line and awaited is not None:
            written = line.strip()
            verdicts.append((offset, awaited[written] > 0))
            awaited[written] -= 1
        elif "=" in line:
            first = line.split("=")[0]
            grounded = set(NUMBER.findall(first)) <= known
            verdicts.append((offset, grounded and sides_agree(line)))
            known.update(NUMBER.findall(line))
    return verdicts


def sides_agree(line: str) -> bool:
    """Whether at least one side is a number and all numeric sides of the line are equal."""
    values = [value for side in line.split("=") if (value := evaluate(side)) is not None]
    return bool(values) and len(set(values)) == 1


def evaluate(text: str) -> Fraction | None:
    """The value of plain arithmetic, or None for anything else."""
    text = text.strip()
    if not ARITHMETIC.fullmatch(text):
        return None
    try:
        return value_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def value_of(node: ast.expr) -> Fraction:
    """The value of a parsed expression of the four operations."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value_of(node.operand)
    raise ValueError(f"not arithmetic: {ast.dump(node)}")
