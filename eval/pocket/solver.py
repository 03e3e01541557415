"""Works problems out and goes wrong on the way, each decision at the rate of its context."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from eval.pocket.draft import Draft, final, latex
from eval.pocket.habits import HIGHEST, Habits
from eval.pocket.plan import Cue, Step, Value, applied, line, operand

MISREAD = {"+": "-", "-": "+", "*": "+", "/": "-"}
TEN = 10
REDO = {"en": "No: ", "zh": "不对："}

Errs = Callable[[str, Cue, float], bool]  # (kind, context, rate): is a mistake made here?


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to write: results alone, each line again the other way round, or anew when wrong.

    `factor` multiplies every rate; `redo` is the share of wrong lines that are noticed, and
    `alarm` that of right lines that are taken for wrong.
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
class Told:
    """A solution: its lines with whether each is right, its answer and its text."""

    lines: tuple[tuple[str, bool], ...]
    answer: str
    language: str

    @property
    def text(self) -> str:
        """What is written."""
        return "\n".join((*(text for text, _ in self.lines), final(self.answer, self.language)))


@dataclass(frozen=True, kw_only=True)
class Solver:
    """A solver with its habits; `errs` says of each decision whether it goes wrong."""

    errs: Errs
    language: str = "en"
    habits: Habits = field(default_factory=Habits)
    strategy: Strategy = PLAIN

    def wrong(self, kind: str, *context: str | int) -> bool:
        """Whether the decision of this kind goes wrong in its context."""
        rate = self.habits.rate(kind, context, self.language) * self.strategy.factor
        return self.errs(kind, context, min(rate, HIGHEST))

    def tell(self, draft: Draft) -> Told:
        """Work the problem out; a line is right if the right solution has it, and only once."""
        plan, lines = draft.plan, list[tuple[str, bool]]()
        misread = plan.misread and self.wrong("order", *plan.cue)
        steps = plan.misread if misread else plan.steps
        values: list[Value] = []
        for place, step in enumerate(steps):
            if step.may_skip and place and self.wrong("skip", step.cue[1], len(steps) - place):
                values.append(values[-1])
                continue
            read = self.read(step, values)
            value = self.computed(*read)
            lines += self.styled(line(*read[:3], value, read[3]), plan.lines)
            if self.noticed(lines):
                true = operand(step.left, values), step.operator, operand(step.right, values)
                value = applied(true[0], true[1], true[2] * step.unit)
                again = line(*true, value, step.unit)
                lines.append((REDO[self.language] + again, again in plan.lines))
            values.append(value)
        told = tuple(once(lines, plan.lines))
        return Told(lines=told, answer=latex(values[-1]), language=self.language)

    def styled(self, written: str, right: tuple[str, ...]) -> list[tuple[str, bool]]:
        """A line as the strategy writes it, nothing for an empty one."""
        if not written:
            return []
        good = written in right
        left, _, value = written.rpartition("=")
        if self.strategy.terse:
            return [(value, good)]
        check = [(f"{value}={left}", good)] if self.strategy.checked else []
        return [(written, good), *check]

    def noticed(self, lines: list[tuple[str, bool]]) -> bool:
        """Whether the last line is taken for wrong and done again."""
        strategy = self.strategy
        if not lines or not strategy.redo:
            return False
        return self.errs("redo", (), strategy.alarm if lines[-1][1] else strategy.redo)

    def read(self, step: Step, values: list[Value]) -> tuple[Value, str, Value, int]:
        """Left operand, operation, right operand and unit as they are understood."""
        left, right = operand(step.left, values), operand(step.right, values)
        operator, unit = step.operator, step.unit
        if step.cue and self.wrong(str(step.cue[0]), *step.cue[1:]):
            operator = MISREAD[operator]
        if step.lure and self.wrong("distractor", step.cue[1], step.lure.kind):
            right, unit = step.lure.amount, 1
        if unit > 1 and self.wrong("unit", int(right), unit, step.cue[2]):
            unit = 1
        if step.may_skip and len(values) > 1 and self.wrong("stale", len(values)):
            left = values[-2]
        return left, operator, right, unit

    def computed(self, left: Value, operator: str, right: Value, unit: int) -> Value:
        """The result, with the mistakes of arithmetic."""
        a, b = int(left), int(right) * unit
        value = applied(a, operator, b)
        if operator == "over":
            reduced = isinstance(value, int) or value.denominator < b
            common = b // Fraction(value).denominator
            if reduced and self.wrong("reduction", a % TEN, common):
                return applied(a // common, "over", b)
            return value
        return value + self.slip(a, operator, b, int(value))

    def slip(self, a: int, operator: str, b: int, value: int) -> int:
        """What a mistake adds to a sum, difference, product, quotient or remainder."""
        if operator == "+" and min(a, b) >= 0 and a % TEN + b % TEN >= TEN < value:
            return -TEN if self.wrong("carry", a % TEN, b % TEN, "+") else 0
        if operator == "-" and a >= b >= 0 and a % TEN < b % TEN:
            return TEN if self.wrong("carry", a % TEN, b % TEN, "-") else 0
        if operator == "*" and min(a, b) > 1:
            return min(a, b) if self.wrong("product", max(a, b), min(a, b)) else 0
        if operator == "/" and b > 1:
            return 1 if self.wrong("quotient", a, b) else 0
        if operator == "%" and a >= b:
            return b if self.wrong("remainder", value, b) else 0
        return 0


def once(lines: Iterable[tuple[str, bool]], right: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """The lines, those of the right solution as right no more often than it has them."""
    awaited = Counter(right)
    for text, good in lines:
        if text in awaited:
            awaited[text] -= 1
        yield text, good and awaited[text] >= 0


def fallible(draft: Draft, build: int) -> Told:
    """How the solver tells a problem to the start policy of one build."""
    random = Random(f"{build} {draft.language} {draft.form}")
    solver = Solver(errs=lambda _kind, _cue, rate: random.random() < rate, language=draft.language)
    return solver.tell(draft)
