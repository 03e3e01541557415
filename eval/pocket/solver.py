"""A fallible solver: writes solutions with mistakes, each at the error rate of its context."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from eval.pocket.draft import Draft, final, latex
from eval.pocket.habits import HIGHEST, Habits
from eval.pocket.plan import Cue, Step, Value, apply_operator, equation, operand

MISREAD = {"+": "-", "-": "+", "*": "+", "/": "-"}
TEN = 10
REDO = {"en": "No: ", "zh": "不对："}

Errs = Callable[[str, Cue, float], bool]  # (kind, context, rate) -> is a mistake made?
Line = tuple[str, bool]  # its text, and whether it is right


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A style of writing solutions, with its own error rates.

    `terse` writes results alone, `checked` repeats each line the other way round. `factor`
    multiplies every error rate. A share `redo` of the wrong lines and a share `alarm` of the right
    lines are rejected and written again.
    """

    terse: bool = False
    checked: bool = False
    factor: float = 1.0
    redo: float = 0.0
    alarm: float = 0.0


PLAIN = Strategy()
STRATEGIES: Mapping[str, Strategy] = {
    "plain": PLAIN,
    "short": Strategy(terse=True, factor=1.8),
    "careful": Strategy(checked=True, factor=0.3),
    "redo": Strategy(redo=0.6, alarm=0.02),
}


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A written solution: its lines, with whether each is right, and its answer."""

    lines: tuple[Line, ...]
    answer: str
    language: str

    @property
    def text(self) -> str:
        """The lines and the sentence with the answer."""
        return "\n".join((*(text for text, _ in self.lines), final(self.answer, self.language)))


@dataclass(frozen=True)
class Mistake:
    """A possible mistake of arithmetic: its kind, its context and what it adds to the result."""

    kind: str
    context: Cue
    offset: int


@dataclass(frozen=True, kw_only=True)
class Solver:
    """A solver with its habits; `errs` decides whether each decision is a mistake."""

    errs: Errs
    language: str = "en"
    habits: Habits = field(default_factory=Habits)
    strategy: Strategy = PLAIN

    def makes_mistake(self, kind: str, *context: str | int) -> bool:
        """Return whether a decision of this kind is a mistake in its context."""
        rate = self.habits.rate(kind, context, self.language) * self.strategy.factor
        return self.errs(kind, context, min(rate, HIGHEST))

    def solve(self, draft: Draft) -> Solution:
        """Write a solution. A line counts as right if the right solution has it, and only once."""
        plan, lines = draft.plan, list[Line]()
        right_lines = plan.lines
        misreads = plan.misread and self.makes_mistake("order", *plan.cue)
        steps = plan.misread if misreads else plan.steps
        results: list[Value] = []
        for place, step in enumerate(steps):
            if step.may_skip and place and self.skips(step, len(steps) - place):
                results.append(results[-1])
                continue
            first, operator, second, unit = self.read_step(step, results)
            result = self.compute(first, operator, second, unit)
            text = equation(first, operator, second, result, unit)
            lines += self.format_line(text, right_lines)
            if self.rejects_last(lines):
                first, second = operand(step.first, results), operand(step.second, results)
                result = apply_operator(first, step.operator, second * step.unit)
                text = equation(first, step.operator, second, result, step.unit)
                lines.append((REDO[self.language] + text, text in right_lines))
            results.append(result)
        unrepeated = tuple(without_repeats(lines, right_lines))
        return Solution(lines=unrepeated, answer=latex(results[-1]), language=self.language)

    def skips(self, step: Step, remaining: int) -> bool:
        """Return whether a step is left out by mistake; `remaining` counts the steps from it on."""
        return self.makes_mistake("skip", step.cue[1], remaining)

    def format_line(self, text: str, right_lines: tuple[str, ...]) -> list[Line]:
        """Return the lines that the strategy writes for one equation; none for an empty text.

        `right_lines` are the texts that count as right. Nothing is drawn at random.
        """
        if not text:
            return []
        is_right = text in right_lines
        calculation, _, result = text.rpartition("=")
        if self.strategy.terse:
            return [(result, is_right)]
        check = [(f"{result}={calculation}", is_right)] if self.strategy.checked else []
        return [(text, is_right), *check]

    def rejects_last(self, lines: list[Line]) -> bool:
        """Return whether the solver takes its last line for wrong and writes it again."""
        strategy = self.strategy
        if not lines or not strategy.redo:
            return False
        return self.errs("redo", (), strategy.alarm if lines[-1][1] else strategy.redo)

    def read_step(self, step: Step, results: list[Value]) -> tuple[Value, str, Value, int]:
        """Return the first operand, operator, second operand and unit as the solver reads them."""
        first, second = operand(step.first, results), operand(step.second, results)
        operator, unit = step.operator, step.unit
        if step.cue and self.makes_mistake(str(step.cue[0]), *step.cue[1:]):
            operator = MISREAD[operator]
        distractor = step.distractor
        if distractor and self.makes_mistake("distractor", step.cue[1], distractor.kind):
            second, unit = distractor.amount, 1
        if unit > 1 and self.makes_mistake("unit", int(second), unit, step.cue[2]):
            unit = 1
        if step.may_skip and len(results) > 1 and self.makes_mistake("stale", len(results)):
            first = results[-2]
        return first, operator, second, unit

    def compute(self, first: Value, operator: str, second: Value, unit: int) -> Value:
        """Return the result of an operation, with possible mistakes of arithmetic."""
        a, b = int(first), int(second) * unit
        result = apply_operator(a, operator, b)
        if operator != "over":
            mistake = MISTAKES[operator](a, b, int(result))
            errs = mistake is not None and self.makes_mistake(mistake.kind, *mistake.context)
            return result + mistake.offset if mistake and errs else result
        is_reducible = isinstance(result, int) or result.denominator < b
        divisor = b // Fraction(result).denominator
        if is_reducible and self.makes_mistake("reduction", a % TEN, divisor):
            return apply_operator(a // divisor, "over", b)
        return result


def mistake_of_sum(a: int, b: int, result: int) -> Mistake | None:
    """Return the mistake to lose a carry; None if there is no carry into a written digit."""
    if min(a, b) < 0 or a % TEN + b % TEN < TEN or result <= TEN:
        return None
    return Mistake("carry", (a % TEN, b % TEN, "+"), -TEN)


def mistake_of_difference(a: int, b: int, _result: int) -> Mistake | None:
    """Return the mistake to forget a borrow; None if there is no borrow."""
    if not a >= b >= 0 or a % TEN >= b % TEN:
        return None
    return Mistake("carry", (a % TEN, b % TEN, "-"), TEN)


def mistake_of_product(a: int, b: int, _result: int) -> Mistake | None:
    """Return the mistake to add the smaller factor once too often; None for a factor below 2."""
    return Mistake("product", (max(a, b), min(a, b)), min(a, b)) if min(a, b) > 1 else None


def mistake_of_quotient(a: int, b: int, _result: int) -> Mistake | None:
    """Return the mistake of a quotient too large by 1; None for a divisor below 2."""
    return Mistake("quotient", (a, b), 1) if b > 1 else None


def mistake_of_remainder(a: int, b: int, result: int) -> Mistake | None:
    """Return the mistake to stop one division early; None if the divisor is the larger number."""
    return Mistake("remainder", (result, b), b) if a >= b else None


MISTAKES: Mapping[str, Callable[[int, int, int], Mistake | None]] = {
    "+": mistake_of_sum,
    "-": mistake_of_difference,
    "*": mistake_of_product,
    "/": mistake_of_quotient,
    "%": mistake_of_remainder,
}

# The kinds of mistakes that make the result of a step wrong, and not what was read.
MISTAKES_OF_RESULTS = frozenset({"carry", "product", "quotient", "remainder", "reduction"})


def without_repeats(lines: Iterable[Line], right_lines: tuple[str, ...]) -> Iterator[Line]:
    """Yield the lines, each marked right at most as often as the right solution has it."""
    awaited = Counter(right_lines)
    for text, is_right in lines:
        if text in awaited:
            awaited[text] -= 1
        yield text, is_right and awaited[text] >= 0


def right_solution(draft: Draft, strategy: str) -> Solution:
    """Return the solution of a problem without mistakes, written in one of `STRATEGIES`."""
    solver = Solver(errs=lambda *_: False, language=draft.language, strategy=STRATEGIES[strategy])
    return solver.solve(draft)


def fallible_solution(draft: Draft, build: int) -> Solution:
    """Return the fallible solution of a problem that one build of the start policy trains on."""
    random = Random(f"{build} {draft.language} {draft.form}")
    solver = Solver(errs=lambda _kind, _cue, rate: random.random() < rate, language=draft.language)
    return solver.solve(draft)
