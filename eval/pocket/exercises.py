"""Exercises without a story: expressions, linear equations, remainders and fractions."""

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import gcd
from random import Random

from eval.pocket.draft import Draft, latex
from eval.pocket.plan import APPLY, Of, Plan, Step

TIMES = "\\cdot"
BOUND = 90  # the largest value on the way
LETTERS = {"a": 20, "b": 20, "c": 15, "d": 9, "k": 4, "m": 4}  # the largest numbers
SYMBOLS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
INVERSE = {"+": "-", "-": "+", "*": "/"}
# By the number of steps: an expression, and how it is read by who takes its order wrong.
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
def template(shape: str) -> tuple[tuple[str | Of, str, str | Of], ...]:
    """The steps of an expression of letters, from the inside out and from left to right."""
    steps: list[tuple[str | Of, str, str | Of]] = []

    def visit(node: ast.expr) -> str | Of:
        if not isinstance(node, ast.BinOp):
            return ast.unparse(node)
        left, right = visit(node.left), visit(node.right)
        steps.append((left, SYMBOLS[type(node.op)], right))
        return Of(len(steps) - 1)

    visit(ast.parse(shape.replace("{", "").replace("}", ""), mode="eval").body)
    return tuple(steps)


def steps_of(shape: str, n: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps of an expression whose letters stand for these numbers."""

    def number(of: str | Of) -> int | Of:
        return n[of] if isinstance(of, str) else of

    return tuple(Step(number(left), sign, number(right)) for left, sign, right in template(shape))


def fits(steps: tuple[Step, ...]) -> bool:
    """Whether every value on the way is positive and under the bound."""
    return all(1 <= value <= BOUND for value in Plan(steps).values)


def worked(random: Random, level: int) -> tuple[str, Plan]:
    """An expression of so many operations that fits in its bounds, read rightly or wrongly."""
    while True:
        shape, wrong = random.choice(SHAPES[level])
        n = {letter: random.randint(2, most) for letter, most in LETTERS.items()}
        plain, other = steps_of(shape, n), steps_of(wrong, n) if wrong else ()
        if fits(plain) and (not other or fits(other)):
            return shape.format(**n), Plan(
                plain, other, ("order", f"{level} {shape}", n["k"], n["b"] % 5)
            )


def expression(random: Random, level: int) -> Draft:
    """Sums and products with brackets."""
    text, plan = worked(random, level)
    ask = random.choice(("Compute ${}$.", "What is ${}$?", "Evaluate ${}$."))
    return exercise("expression", ask.format(text), plan, "Prealgebra")


def remainder(random: Random, level: int) -> Draft:
    """The remainder of an expression."""
    text, plan = worked(random, level - 1)
    by = random.randint(3, 9)

    def ended(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return (*steps, Step(Of(len(steps) - 1), "%", by)) if steps else ()

    ask = random.choice(
        (
            "What is the remainder when ${}$ is divided by ${}$?",
            "Find the remainder of ${}$ divided by ${}$.",
        )
    )
    plan = Plan(ended(plan.steps), ended(plan.misread), plan.cue)
    return exercise("remainder", ask.format(text, by), plan, "Number Theory")


def equation(random: Random, level: int) -> Draft:
    """An unknown on which `level` operations were done, which are undone one by one."""
    while True:
        value = random.randint(2, 12)
        times = random.random() < 0.6 or level == 5
        text, undo = "x", list[Step]()
        done: list[tuple[str, int]] = []
        for _ in range(level):
            operator = "*" if times else random.choice("+-")
            amount = random.randint(2, 6 if operator == "*" else 20)
            value = APPLY[operator](value, amount)
            text = around(text, operator, amount)
            done.append((operator, amount))
            times = not times
            if not 1 <= value <= BOUND:
                break
        else:
            break
    for place, (operator, amount) in enumerate(reversed(done)):
        left = Of(place - 1) if place else value
        cue = ("undo", f"{operator}{amount % 4}", place) if operator != "*" else ()
        undo.append(Step(left, INVERSE[operator], amount, cue=cue))
    ask = random.choice(("Solve ${}$ for $x$.", "What is $x$ if ${}$?", "Find $x$ such that ${}$."))
    return exercise("equation", ask.format(f"{text} = {value}"), Plan(tuple(undo)), "Algebra")


def around(text: str, operator: str, amount: int) -> str:
    """An expression of x with one more operation around it."""
    if operator == "*":
        return f"{amount}{text}" if text == "x" else f"{amount}({text})"
    return f"{text} {operator} {amount}"


def fraction(random: Random, level: int) -> Draft:
    """A product (2 steps, 3 with reduction) or a sum or difference (4, 5) of two fractions."""
    operator = "*" if level <= 3 else random.choice("+-")
    while True:
        a, b = (Fraction(random.randint(1, 20), random.randint(2, 15)) for _ in range(2))
        a, b = max(a, b), min(a, b)
        if a.denominator == 1 or b.denominator == 1 or a == b:
            continue
        steps = fraction_steps(a, operator, b)
        values = Plan(steps).values
        above, below = (int(value) for value in values[-3:-1])
        if max(values) <= BOUND and (gcd(above, below) > 1) == (level in (3, 5)):
            break
    text = f"{latex(a)} {TIMES if operator == '*' else operator} {latex(b)}"
    ask = random.choice(("Compute ${}$.", "What is ${}$ in lowest terms?"))
    return exercise("fraction", ask.format(text), Plan(steps), "Fractions")


def fraction_steps(a: Fraction, operator: str, b: Fraction) -> tuple[Step, ...]:
    """The steps of a + b, a - b or a * b over the product of the denominators."""
    first: list[Step] = [Step(a.numerator, "*", b.numerator)]
    if operator != "*":
        first = [
            Step(a.numerator, "*", b.denominator),
            Step(b.numerator, "*", a.denominator),
            Step(Of(0), operator, Of(1)),
        ]
    cue = ("denominator", a.denominator, b.denominator)
    n = len(first)
    below = Step(a.denominator, "*", b.denominator, cue=cue)
    return (*first, below, Step(Of(n - 1), "over", Of(n)))


def exercise(kind: str, question: str, plan: Plan, subject: str) -> Draft:
    """An English exercise as a Draft."""
    return Draft(kind=kind, asked=lambda: question, plan=plan, subject=subject)


EXERCISES: tuple[Callable[[Random, int], Draft], ...] = (expression, equation, remainder, fraction)
