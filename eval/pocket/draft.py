"""What every generator of the pocket world returns, and its rendering as worked text."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from eval.pocket.plan import Plan, Value

FINAL = {"en": "The answer is \\boxed{{{answer}}}.", "zh": "答案是\\boxed{{{answer}}}。"}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A problem with its plan; `level` is the number of its steps."""

    kind: str
    asked: Callable[[], str]  # words are found for few of the problems that are drawn
    plan: Plan
    language: str = "en"
    subject: str | None = None

    @cached_property
    def question(self) -> str:
        """The problem in words."""
        return self.asked()

    @property
    def answer(self) -> str:
        """The right answer, a fraction as LaTeX."""
        return latex(self.plan.values[-1])

    @property
    def exact_form(self) -> bool:
        """Whether the answer's form is asked for: of fractions it is, lowest terms as in MATH."""
        return self.kind == "fraction"

    @property
    def level(self) -> int:
        """How many lines the right solution has."""
        return len(self.plan.lines)

    @property
    def solution(self) -> str:
        """One step a line, written without spaces (fewer tokens), then the boxed answer."""
        return "\n".join((*self.plan.lines, final(self.answer, self.language)))

    @property
    def transcript(self) -> str:
        """The same answer reached by a program and its output."""
        code = f"```python\n{self.plan.program}\n```"
        output = f"```output\n{self.plan.values[-1]}\n```"
        return f"{code}\n{output}\n{final(self.answer, self.language)}"

    @cached_property
    def form(self) -> str:
        """The canonical form: people, goods, words and distractors are left out."""
        return f"{self.kind} {self.plan.form}"


def final(answer: str, language: str) -> str:
    """The sentence that boxes an answer."""
    return FINAL[language].format(answer=answer)


def latex(value: Value) -> str:
    """The number as LaTeX, whole numbers without a fraction bar."""
    if isinstance(value, Fraction) and value.denominator > 1:
        return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    return str(value)
