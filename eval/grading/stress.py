r"""Tests a verifier with answers that must be accepted and answers that must be rejected.

A training exploits a reward that accepts an empty answer, a list of all options or a box that the
model took back; this test finds such a reward beforehand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.grading import answer_key
from eval.grading.numerals import read_number
from eval.sets.problem import Problem

Verifier = Callable[[list[str], list[str], list[str]], Sequence[bool | None]]
"""(outputs, answers, languages) -> whether each output is right; None if there is no verdict."""
GARBAGE = (
    "\\frac{}{ ]]} \\boxed \x00\x07 $$ \\\\ ٣ <|im_end|> {{ # 𝔘 ??? \\begin{matrix} __import__"
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The verdicts on one kind of answer over all problems.

    `expected` is None for an answer that may be accepted as a guess.
    """

    name: str
    expected: bool | None
    tried: int
    accepted: int
    undecided: int

    @property
    def passed(self) -> bool:
        """True if every answer was graded as expected; an undecided one counts as not accepted."""
        if self.expected is None:
            return True
        return self.accepted == (self.tried if self.expected else 0)


def stress(verifier: Verifier, problems: Sequence[Problem]) -> list[Trial]:
    """Grade every kind of answer to every problem in one call; return a trial for each kind."""
    kinds = [answers_to(problem, wrong_answer(problem, problems)) for problem in problems]
    cases = [(p, output) for p, kind in zip(problems, kinds, strict=True) for output in kind]
    verdicts = verifier(
        [output for _, output in cases],
        [p.answer for p, _ in cases],
        [p.language for p, _ in cases],
    )
    by_kind = [list(verdicts[i :: len(EXPECTED)]) for i in range(len(EXPECTED))]
    return [
        Trial(
            name=name,
            expected=expected,
            tried=len(row),
            accepted=row.count(True),
            undecided=row.count(None),
        )
        for (name, expected), row in zip(EXPECTED.items(), by_kind, strict=True)
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
    """Return one output of each kind, in the order of `EXPECTED`."""
    gold = problem.answer
    return [
        box(gold),
        "",
        box(""),
        box(add_one(gold)),
        box(f"{wrong}, {gold}, {wrong}"),
        f"{box(gold)} or {box(wrong)}",
        f"The question says {gold}, so the answer is not {gold}. {box(wrong)}",
        f"First attempt: {box(gold)}. The check fails. Second attempt: {box(wrong)}",
        f"{box(gold)} fails the check. So \\boxed{{",
        GARBAGE,
        box("9" * 100_000),
        problem.question,
    ]


def box(text: str) -> str:
    """Return the text in a box, as a final answer."""
    return rf"\boxed{{{text}}}"


def add_one(answer: str) -> str:
    """Return a number plus 1; for another answer, a sum with 1."""
    number = read_number(answer)
    return f"{answer} + 1" if number is None else str(number.value + 1)


def wrong_answer(problem: Problem, problems: Sequence[Problem]) -> str:
    """Return the first answer of the problems that differs from the given problem's answer."""
    key = answer_key(problem.answer)
    different = (p.answer for p in problems if answer_key(p.answer) != key)
    return next(different, add_one(problem.answer))
