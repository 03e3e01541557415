"""Generates exercises without a story: expressions, linear equations, remainders and fractions."""

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import gcd
from random import Random

from eval.pocket.draft import Draft, latex
from eval.pocket.integers import draw_integer
from eval.pocket.plan import APPLY, Operand, Plan, Step, StepResult

TIMES = "\\cdot"
BOUND = 90  # the largest value of a step
LETTERS = {"a": 20, "b": 20, "c": 15, "d": 9, "k": 4, "m": 4}  # the largest number of each
SYMBOLS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
INVERSE = {"+": "-", "-": "+", "*": "/"}
# By the number of steps: an expression, and how a wrong order of operations misreads it.
SHAPES: Mapping[int, tuple[tuple[str, str], ...]] = {
    1: (("{a} + {b}", ""), ("{a} * {k}", "")),
    2: (
        ("{a} + {b} * {k}", "({a} + {b}) * {k}"),
        ("({a} + {b}) * {k}", "{a} + {b} * {k}"),
        ("{a} - {b} * {k}", "({a} - {b}) * {k}"),
        ("({a} - {b}) * {k}", "{a} - {b} * {k}"),
    ),
    3: (
        ("({a} + {b}) * {k} - {c}", "{a} + {b} * {k} - {c}"),
        ("{a} * {k} + {b} * {m}", "({a} * {k} + {b}) * {m}"),
        ("{c} + ({a} - {b}) * {k}", "({c} + {a} - {b}) * {k}"),
        ("{a} * {k} - {b} * {m}", "({a} * {k} - {b}) * {m}"),
    ),
    4: (
        ("({a} + {b}) * {k} - {c} * {m}", "({a} + {b}) * {k} * {m} - {c}"),
        ("{a} * {k} + {b} * {m} - {c}", "({a} * {k} + {b}) * {m} - {c}"),
        ("({a} - {b}) * {k} + {c} * {m}", "(({a} - {b}) * {k} + {c}) * {m}"),
    ),
    5: (
        ("({a} + {b}) * {k} - ({c} - {d}) * {m}", "({a} + {b}) * {k} - {c} + {d} * {m}"),
        ("({a} + {b}) * {k} + {c} * {m} - {d}", "(({a} + {b}) * {k} + {c}) * {m} - {d}"),
    ),
}


@cache
def template(shape: str) -> tuple[tuple[str | StepResult, str, str | StepResult], ...]:
    """Return the steps of an expression of letters, from the inside out and from left to right."""
    steps: list[tuple[str | StepResult, str, str | StepResult]] = []

    def visit(node: ast.expr) -> str | StepResult:
        if not isinstance(node, ast.BinOp):
            return ast.unparse(node)
        first, second = visit(node.left), visit(node.right)
        steps.append((first, SYMBOLS[type(node.op)], second))
        return StepResult(len(steps) - 1)

    visit(ast.parse(shape.replace("{", "").replace("}", ""), mode="eval").body)
    return tuple(steps)


def steps_of(shape: str, numbers: Mapping[str, int]) -> tuple[Step, ...]:
    """Return the steps of an expression with a number for each letter."""

    def operand(symbol: str | StepResult) -> Operand:
        return numbers[symbol] if isinstance(symbol, str) else symbol

    return tuple(
        Step(operand(first), sign, operand(second)) for first, sign, second in template(shape)
    )


def fits(steps: tuple[Step, ...]) -> bool:
    """Return whether the result of every step is positive and at most `BOUND`."""
    return all(1 <= result <= BOUND for result in Plan(steps).values)


def draw_expression(random: Random, level: int) -> tuple[str, Plan]:
    """Draw an expression of `level` operations and its plan; all results are within bounds."""
    while True:
        shape, misread_shape = random.choice(SHAPES[level])
        n = {letter: draw_integer(random, 2, largest) for letter, largest in LETTERS.items()}
        steps, misread = steps_of(shape, n), steps_of(misread_shape, n) if misread_shape else ()
        if fits(steps) and (not misread or fits(misread)):
            cue = ("order", f"{level} {shape}", n["k"], n["b"] % 5)
            return shape.format(**n), Plan(steps, misread, cue)


def expression(random: Random, level: int) -> Draft:
    """Draw an exercise to compute sums and products with brackets."""
    text, plan = draw_expression(random, level)
    ask = random.choice(("Compute ${}$.", "What is ${}$?", "Evaluate ${}$."))
    return exercise("expression", ask.format(text), plan, "Prealgebra")


def remainder(random: Random, level: int) -> Draft:
    """Draw an exercise to find the remainder of an expression."""
    text, plan = draw_expression(random, level - 1)
    divisor = draw_integer(random, 3, 9)

    def with_remainder(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return (*steps, Step(StepResult(len(steps) - 1), "%", divisor)) if steps else ()

    ask = random.choice(
        (
            "What is the remainder when ${}$ is divided by ${}$?",
            "Find the remainder of ${}$ divided by ${}$.",
        )
    )
    plan = Plan(with_remainder(plan.steps), with_remainder(plan.misread), plan.cue)
    return exercise("remainder", ask.format(text, divisor), plan, "Number Theory")


def equation(random: Random, level: int) -> Draft:
    """Draw an equation of x with `level` operations, which the solution undoes one by one."""
    while (operations_drawn := draw_operations(random, level)) is None:
        pass
    value, text, operations = operations_drawn
    steps: list[Step] = []
    for place, (operator, amount) in enumerate(reversed(operations)):
        first = StepResult(place - 1) if place else value
        cue = ("undo", f"{operator}{amount % 4}", place) if operator != "*" else ()
        steps.append(Step(first, INVERSE[operator], amount, cue=cue))
    ask = random.choice(("Solve ${}$ for $x$.", "What is $x$ if ${}$?", "Find $x$ such that ${}$."))
    return exercise("equation", ask.format(f"{text} = {value}"), Plan(tuple(steps)), "Algebra")


def draw_operations(random: Random, level: int) -> tuple[int, str, list[tuple[str, int]]] | None:
    """Draw `level` operations on x; return their value, their expression and the operations.

    Returns None if a value leaves the bounds.
    """
    value = draw_integer(random, 2, 12)
    multiplies = random.random() < 0.6 or level == 5
    text = "x"
    operations: list[tuple[str, int]] = []
    for _ in range(level):
        operator = "*" if multiplies else random.choice("+-")
        amount = draw_integer(random, 2, 6 if operator == "*" else 20)
        value = APPLY[operator](value, amount)
        text = with_operation(text, operator, amount)
        operations.append((operator, amount))
        multiplies = not multiplies
        if not 1 <= value <= BOUND:
            return None
    return value, text, operations


def with_operation(text: str, operator: str, amount: int) -> str:
    """Return an expression of x with one more operation applied to it.

    A factor stands in front, as in 3x and 3(x + 2). A term is appended, as in 3x - 4.
    """
    if operator == "*":
        return f"{amount}{text}" if text == "x" else f"{amount}({text})"
    return f"{text} {operator} {amount}"


def fraction(random: Random, level: int) -> Draft:
    """Draw a product of two fractions, or for levels 4 and 5 a sum or difference.

    The result of levels 3 and 5 has to be reduced, that of the other levels is in lowest terms.
    """
    operator = "*" if level <= 3 else random.choice("+-")
    while True:
        a, b = draw_fractions(random)
        steps = fraction_steps(a, operator, b)
        results = Plan(steps).values
        numerator, denominator = (int(result) for result in results[-3:-1])
        is_reducible = gcd(numerator, denominator) > 1
        if max(results) <= BOUND and is_reducible == (level in (3, 5)):
            break
    text = f"{latex(a)} {TIMES if operator == '*' else operator} {latex(b)}"
    ask = random.choice(("Compute ${}$.", "What is ${}$ in lowest terms?"))
    return exercise("fraction", ask.format(text), Plan(steps), "Fractions")


def draw_fractions(random: Random) -> tuple[Fraction, Fraction]:
    """Draw two different fractions that are not whole numbers, the larger one first."""
    while True:
        a, b = (
            Fraction(draw_integer(random, 1, 20), draw_integer(random, 2, 15)) for _ in range(2)
        )
        if a.denominator > 1 and b.denominator > 1 and a != b:
            return max(a, b), min(a, b)


def fraction_steps(a: Fraction, operator: str, b: Fraction) -> tuple[Step, ...]:
    """Return the steps of a + b, a - b or a * b over the product of the denominators."""
    steps: list[Step] = [Step(a.numerator, "*", b.numerator)]
    if operator != "*":
        steps = [
            Step(a.numerator, "*", b.denominator),
            Step(b.numerator, "*", a.denominator),
            Step(StepResult(0), operator, StepResult(1)),
        ]
    cue = ("denominator", a.denominator, b.denominator)
    n = len(steps)
    denominator = Step(a.denominator, "*", b.denominator, cue=cue)
    return (*steps, denominator, Step(StepResult(n - 1), "over", StepResult(n)))


def exercise(kind: str, question: str, plan: Plan, subject: str) -> Draft:
    """Return an English exercise as a Draft."""
    return Draft(kind=kind, write_question=lambda: question, plan=plan, subject=subject)


EXERCISES: tuple[Callable[[Random, int], Draft], ...] = (expression, equation, remainder, fraction)
