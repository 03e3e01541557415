"""Grades a written solution step by step."""

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
    """Return the end offset of each step of `output` and whether the step is right.

    A line is a step if it equates numbers or boxes an answer. A box is right if it holds `answer`.
    An equation is right if the right `solution` has it and it was not written before. Without a
    solution, it is right if all its numeric sides are equal and every number on its first side is
    in the question or in an earlier step.
    """
    grounded = set(NUMBER.findall(question)) | ({"100"} if "%" in question else set())
    awaited = None if solution is None else Counter(solution.splitlines())
    verdicts, offset = [], 0
    for line in output.splitlines(keepends=True):
        offset += len(line)
        boxed = BOXED.search(line)
        if boxed:
            verdicts.append((offset, boxed.group(1).strip() == answer))
        elif "=" in line and awaited is not None:
            equation = line.strip()
            verdicts.append((offset, awaited[equation] > 0))
            awaited[equation] -= 1
        elif "=" in line:
            first_side = line.split("=")[0]
            is_grounded = set(NUMBER.findall(first_side)) <= grounded
            verdicts.append((offset, is_grounded and sides_agree(line)))
            grounded.update(NUMBER.findall(line))
    return verdicts


def sides_agree(line: str) -> bool:
    """Return whether a line has at least one numeric side and all of them are equal."""
    values = [value for side in line.split("=") if (value := evaluate(side)) is not None]
    return bool(values) and len(set(values)) == 1


def evaluate(text: str) -> Fraction | None:
    """Return the value of plain arithmetic; None for any other text."""
    text = text.strip()
    if not ARITHMETIC.fullmatch(text):
        return None
    try:
        return value_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def value_of(node: ast.expr) -> Fraction:
    """Return the value of a parsed expression of the four operations.

    Raises:
        ValueError: the expression has another node.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value_of(node.operand)
    raise ValueError(f"not arithmetic: {ast.dump(node)}")
