"""The plan of a problem's solution: its steps, their lines, the program and the canonical form."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add, floordiv, mod, mul, sub
from typing import NamedTuple, TypeAlias

APPLY = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod}
Value: TypeAlias = int | Fraction
Cue: TypeAlias = tuple[str | int, ...]  # the context of a decision
Operand: TypeAlias = "int | StepResult"


class StepResult(NamedTuple):
    """A reference to the result of an earlier step, by the index of that step."""

    step: int


class Distractor(NamedTuple):
    """An irrelevant number beside an event, with the kind of its sentence."""

    kind: int
    amount: int


class Step(NamedTuple):
    """An operation: `first operator second`; "over" makes a fraction in lowest terms.

    `cue` is the context in which the operation has to be inferred from the text, empty if the text
    states it. `unit` is 2 for an amount in pairs. Only events of a story `may_skip`.
    """

    first: Operand
    operator: str
    second: Operand
    cue: Cue = ()
    unit: int = 1
    distractor: Distractor | None = None
    may_skip: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps of a problem, and `misread`, those of a solver with a wrong order of operations."""

    steps: tuple[Step, ...]
    misread: tuple[Step, ...] = ()
    cue: Cue = ()

    @property
    def values(self) -> list[Value]:
        """The right result of every step."""
        results: list[Value] = []
        for step in self.steps:
            first, second = operand(step.first, results), operand(step.second, results)
            results.append(apply_operator(first, step.operator, second * step.unit))
        return results

    @property
    def lines(self) -> tuple[str, ...]:
        """The right line of every step that writes one."""
        results = self.values
        lines: list[str] = []
        for step, result in zip(self.steps, results, strict=True):
            first, second = operand(step.first, results), operand(step.second, results)
            lines.append(equation(first, step.operator, second, result, step.unit))
        return tuple(text for text in lines if text)

    @property
    def program(self) -> str:
        """A Python program that prints the answer."""
        names = "abcdefghijklmnopqrstuvw"

        def text(operand: Operand) -> str:
            return names[operand.step] if isinstance(operand, StepResult) else str(operand)

        code: list[str] = []
        for name, step in zip(names, self.steps, strict=False):
            second = text(step.second) + (f" * {step.unit}" if step.unit > 1 else "")
            if step.operator == "over":
                code.append("from fractions import Fraction")
                code.append(f"{name} = Fraction({text(step.first)}, {second})")
            else:
                operator = step.operator.replace("/", "//")
                code.append(f"{name} = {text(step.first)} {operator} {second}")
        return "\n".join([*code, f"print({names[len(self.steps) - 1]})"])

    @property
    def form(self) -> str:
        """The canonical form: the same for any order of the operands of sums and products."""
        return canonical_form(self.steps, StepResult(len(self.steps) - 1))


def operand(reference: Operand, results: Sequence[Value]) -> Value:
    """Return the value of an operand: a number itself, or the result of the step it refers to."""
    return results[reference.step] if isinstance(reference, StepResult) else reference


def apply_operator(first: Value, operator: str, second: Value) -> Value:
    """Return the right result of one operation."""
    if operator == "over":
        quotient = Fraction(int(first), int(second))
        return int(quotient) if quotient.denominator == 1 else quotient
    return APPLY[operator](first, second)


def equation(first: Value, operator: str, second: Value, result: Value, unit: int = 1) -> str:
    """Return the line of one operation; "" for a fraction that is in lowest terms already."""
    if operator == "over":
        is_unchanged = isinstance(result, Fraction) and result.denominator == second
        return "" if is_unchanged and result.numerator == first else f"{first}/{second}={result}"
    if operator == "%":
        times = (int(first) - int(result)) // int(second)
        return f"{first}={second}*{times}+{result}"
    return f"{first}{operator}{second}{f'*{unit}' if unit > 1 else ''}={result}"


def canonical_form(steps: Sequence[Step], reference: Operand, unit: int = 1) -> str:
    """Return the canonical form of an operand."""
    if isinstance(reference, int):
        return str(reference * unit)
    step = steps[reference.step]
    if step.operator in "+-":
        return f"({' '.join(sorted(terms(steps, reference, '+')))})"
    if step.operator == "*":
        return f"[{' '.join(sorted(factors(steps, reference)))}]"
    first, second = canonical_form(steps, step.first), canonical_form(steps, step.second)
    return f"({first} {step.operator} {second})"


def terms(steps: Sequence[Step], reference: Operand, sign: str, unit: int = 1) -> list[str]:
    """Return the canonical forms of the signed terms of a sum; of another operand, its own."""
    if isinstance(reference, int) or steps[reference.step].operator not in "+-":
        return [sign + canonical_form(steps, reference, unit)]
    step = steps[reference.step]
    flipped = sign if step.operator == "+" else "-+"[sign == "-"]
    return terms(steps, step.first, sign) + terms(steps, step.second, flipped, step.unit)


def factors(steps: Sequence[Step], reference: Operand) -> list[str]:
    """Return the canonical forms of the factors of a product; of another operand, its own."""
    if isinstance(reference, int) or steps[reference.step].operator != "*":
        return [canonical_form(steps, reference)]
    step = steps[reference.step]
    return factors(steps, step.first) + factors(steps, step.second)
