"""The right way through a problem: its steps, their lines, the program and the canonical form."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add, floordiv, mod, mul, sub
from typing import TypeAlias

APPLY = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod}
Value: TypeAlias = int | Fraction
Cue: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Of:
    """The result of an earlier step."""

    step: int


@dataclass(frozen=True)
class Lure:
    """A number beside an event that has nothing to do with it, and the kind of its sentence."""

    kind: int
    amount: int


@dataclass(frozen=True)
class Step:
    """One decision: `left operator right`, where `over` makes a fraction in lowest terms.

    `cue` is the context in which the operation is read off the text, and empty where the text
    states it; an amount in pairs has `unit` 2. A step that `may_skip` is an event of a story.
    """

    left: int | Of
    operator: str
    right: int | Of
    cue: Cue = ()
    unit: int = 1
    lure: Lure | None = None
    may_skip: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps of a problem; `misread` are those of who takes the operations in a wrong order."""

    steps: tuple[Step, ...]
    misread: tuple[Step, ...] = ()
    cue: Cue = ()

    @property
    def values(self) -> list[Value]:
        """The right result of every step."""
        found: list[Value] = []
        for step in self.steps:
            left, right = operand(step.left, found), operand(step.right, found)
            found.append(applied(left, step.operator, right * step.unit))
        return found

    @property
    def lines(self) -> tuple[str, ...]:
        """The right line of every step that writes one."""
        found: list[Value] = []
        lines: list[str] = []
        for step, value in zip(self.steps, self.values, strict=True):
            left, right = operand(step.left, found), operand(step.right, found)
            lines.append(line(left, step.operator, right, value, step.unit))
            found.append(value)
        return tuple(text for text in lines if text)

    @property
    def program(self) -> str:
        """Python that prints the answer."""
        names = "abcdefghijklmnopqrstuvw"

        def text(value: int | Of) -> str:
            return names[value.step] if isinstance(value, Of) else str(value)

        code: list[str] = []
        for name, step in zip(names, self.steps, strict=False):
            right = text(step.right) + (f" * {step.unit}" if step.unit > 1 else "")
            if step.operator == "over":
                code.append("from fractions import Fraction")
                code.append(f"{name} = Fraction({text(step.left)}, {right})")
            else:
                operator = step.operator.replace("/", "//")
                code.append(f"{name} = {text(step.left)} {operator} {right}")
        return "\n".join([*code, f"print({names[len(self.steps) - 1]})"])

    @property
    def form(self) -> str:
        """The problem up to what changes nothing: operands of sums and products are sorted."""
        return written(self.steps, Of(len(self.steps) - 1))


def operand(of: int | Of, values: Sequence[Value]) -> Value:
    """A number as it stands, or the result of the step that it is of."""
    return values[of.step] if isinstance(of, Of) else of


def applied(left: Value, operator: str, right: Value) -> Value:
    """The right result of one operation."""
    if operator == "over":
        found = Fraction(int(left), int(right))
        return int(found) if found.denominator == 1 else found
    return APPLY[operator](left, right)


def line(left: Value, operator: str, right: Value, value: Value, unit: int = 1) -> str:
    """What is written for one operation; nothing for a fraction that has no common divisor."""
    if operator == "over":
        same = isinstance(value, Fraction) and value.denominator == right
        return "" if same and value.numerator == left else f"{left}/{right}={value}"
    if operator == "%":
        times = (int(left) - int(value)) // int(right)
        return f"{left}={right}*{times}+{value}"
    return f"{left}{operator}{right}{f'*{unit}' if unit > 1 else ''}={value}"


def written(steps: Sequence[Step], of: int | Of, unit: int = 1) -> str:
    """The canonical form of an operand."""
    if isinstance(of, int):
        return str(of * unit)
    step = steps[of.step]
    if step.operator in "+-":
        return f"({' '.join(sorted(terms(steps, of, '+')))})"
    if step.operator == "*":
        return f"[{' '.join(sorted(factors(steps, of)))}]"
    return f"({written(steps, step.left)} {step.operator} {written(steps, step.right)})"


def terms(steps: Sequence[Step], of: int | Of, sign: str, unit: int = 1) -> list[str]:
    """The signed terms of a sum."""
    if isinstance(of, int) or steps[of.step].operator not in "+-":
        return [sign + written(steps, of, unit)]
    step = steps[of.step]
    flipped = sign if step.operator == "+" else "-+"[sign == "-"]
    return terms(steps, step.left, sign) + terms(steps, step.right, flipped, step.unit)


def factors(steps: Sequence[Step], of: int | Of) -> list[str]:
    """The factors of a product."""
    if isinstance(of, int) or steps[of.step].operator != "*":
        return [written(steps, of)]
    step = steps[of.step]
    return factors(steps, step.left) + factors(steps, step.right)
