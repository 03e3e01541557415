"""A generated problem with its plan, rendered as question, solution and program transcript."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from eval.pocket.plan import Plan, Value

FINAL = {"en": "The answer is \\boxed{{{answer}}}.", "zh": "答案是\\boxed{{{answer}}}。"}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A generated problem with the plan of its solution.

    `write_question` returns the question; it is called on first use, because the words of most
    drafts are never needed.
    """

    kind: str
    write_question: Callable[[], str]
    plan: Plan
    language: str = "en"
    subject: str | None = None

    @cached_property
    def question(self) -> str:
        """The problem in words."""
        return self.write_question()

    @property
    def answer(self) -> str:
        """The right answer, a fraction as LaTeX."""
        return latex(self.plan.values[-1])

    @property
    def exact_form(self) -> bool:
        """True if the form of the answer counts: fractions in lowest terms, as in MATH."""
        return self.kind == "fraction"

    @property
    def level(self) -> int:
        """The number of lines of the right solution without its last sentence."""
        return len(self.plan.lines)

    @property
    def solution(self) -> str:
        """The right solution: one step a line without spaces, then the boxed answer."""
        return "\n".join((*self.plan.lines, final(self.answer, self.language)))

    @property
    def transcript(self) -> str:
        """A program that computes the answer, its output, and the boxed answer."""
        code = f"```python\n{self.plan.program}\n```"
        output = f"```output\n{self.plan.values[-1]}\n```"
        return f"{code}\n{output}\n{final(self.answer, self.language)}"

    @cached_property
    def form(self) -> str:
        """The canonical form, without people, things, words and distractors."""
        return f"{self.kind} {self.plan.form}"


def final(answer: str, language: str) -> str:
    """Return the last sentence of a solution, with the answer in a box."""
    return FINAL[language].format(answer=answer)


def latex(value: Value) -> str:
    """Return a number as LaTeX; whole numbers have no fraction bar."""
    if isinstance(value, Fraction) and value.denominator > 1:
        return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    return str(value)
