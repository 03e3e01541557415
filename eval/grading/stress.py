r"""Tries a verifier with answers that must be right and answers that must not be paid.

A reward that pays for an empty answer, for listing all options or for a box that the model took
back is found by training sooner or later; here it is found before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.grading import answer_key
from eval.grading.numerals import read_number
from eval.sets.problem import Problem

Verifier = Callable[[list[str], list[str], list[str]], Sequence[bool | None]]
"""(outputs, answers, languages) -> is each right; None where no verdict was reached."""
GARBAGE = (
    "\\frac{}{ ]]} \\boxed \x00\x07 $$ \\\\ ٣ <|im_end|> {{ # 𝔘 ??? \\begin{matrix} __import__"
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One kind of answer over all problems; `expected` is None where a guess may be paid."""

    name: str
    expected: bool | None
    tried: int
    accepted: int
    undecided: int

    @property
    def passed(self) -> bool:
        """Was every answer graded as it must be? No verdict is neither right nor paid."""
        if self.expected is None:
            return True
        return self.accepted == (self.tried if self.expected else 0)


def stress(verifier: Verifier, problems: Sequence[Problem]) -> list[Trial]:
    """Every kind of answer to every problem, graded together."""
    kinds = [answers_to(problem, wrong_answer(problem, problems)) for problem in problems]
    asked = [(p, output) for p, kind in zip(problems, kinds, strict=True) for output in kind]
    verdicts = verifier(
        [output for _, output in asked],
        [p.answer for p, _ in asked],
        [p.language for p, _ in asked],
    )
    found = [list(verdicts[i :: len(EXPECTED)]) for i in range(len(EXPECTED))]
    return [
        Trial(
            name=name,
            expected=expected,
            tried=len(row),
            accepted=row.count(True),
            undecided=row.count(None),
        )
        for (name, expected), row in zip(EXPECTED.items(), found, strict=True)
    ]


EXPECTED: dict[str, bool | None] = {
    "gold": True,
    "empty answer": False,
    "empty box": False,
    "near miss": False,
    "all options in a box": False,
    "a box for each option": False,
    "gold quoted from the question": False,
    "box inside a failed attempt": False,
    "box taken back": False,
    "garbage": False,
    "a very long number": False,
    "question repeated": None,  # without any mark of an answer the last number is a guess
}


def answers_to(problem: Problem, wrong: str) -> list[str]:
    """One output of each kind, in the order of `EXPECTED`."""
    gold = problem.answer
    return [
        boxed(gold),
        "",
        boxed(""),
        boxed(near(gold)),
        boxed(f"{wrong}, {gold}, {wrong}"),
        f"{boxed(gold)} or {boxed(wrong)}",
        f"The question says {gold}, so the answer is not {gold}. {boxed(wrong)}",
        f"First attempt: {boxed(gold)}. The check fails. Second attempt: {boxed(wrong)}",
        f"{boxed(gold)} fails the check. So \\boxed{{",
        GARBAGE,
        boxed("9" * 100_000),
        problem.question,
    ]


def boxed(text: str) -> str:
    """The text as a final answer."""
    return rf"\boxed{{{text}}}"


def near(answer: str) -> str:
    """A number plus 1; of anything else a sum with 1."""
    number = read_number(answer)
    return f"{answer} + 1" if number is None else str(number.value + 1)


def wrong_answer(problem: Problem, problems: Sequence[Problem]) -> str:
    """The answer of another problem that is another value."""
    key = answer_key(problem.answer)
    return next((p.answer for p in problems if answer_key(p.answer) != key), near(problem.answer))
