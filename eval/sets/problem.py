"""A benchmark problem: the question, its reference answer, and what is known about it."""

from dataclasses import dataclass, replace
from typing import Literal

Counts = Literal["all", "any", "first", "last"]


@dataclass(frozen=True)
class Answers:
    """A question's reference answers, and which of an output's boxes count for it.

    `all`: each answer is asked, in any order, in one box or in the last so many; `any`: one answer
    is enough; `last`, `first`: there is one answer, and that box holds it. With `exact_form` the
    reference's form is asked for too, such as lowest terms: 8/12 is then not 2/3.
    With a `pattern`, the answer in an output is its last match, or the first group of that, and no
    box. `verbatim` answers are compared as texts, whatever their case, and not as mathematics.
    """

    texts: tuple[str, ...]
    counts: Counts = "last"
    exact_form: bool = False
    pattern: str | None = None
    verbatim: bool = False

    @property
    def right(self) -> tuple[str, ...]:
        """The texts each of which is a right answer: when all are asked, their list alone."""
        return ("; ".join(self.texts),) if self.counts == "all" else self.texts


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, as every data folder and every loader gives it; `answer` is never empty.

    `answers` says more where a question has several; `answer` is then the first or their list.
    `exact_form`: the question asks for the reference's form, see `Answers`.
    """

    id: str
    question: str
    answer: str
    language: str = "en"
    solution: str | None = None
    level: int | None = None
    subject: str | None = None
    answers: Answers | None = None
    exact_form: bool = False

    @property
    def reference(self) -> Answers:
        """What an output is compared with."""
        return replace(self.answers or Answers((self.answer,)), exact_form=self.exact_form)
