"""The benchmark problem: its question, its reference answers and its metadata."""

from dataclasses import dataclass, replace
from typing import Literal

Counts = Literal["all", "any", "first", "last", "whole"]


@dataclass(frozen=True)
class Answers:
    """The reference answers of a question, and which boxes of an output are compared with them.

    `counts` selects the boxes. `all`: every reference answer is required, in any order, in one box
    or in the last boxes, one for each. `any`: one of the reference answers is enough. `last` or
    `first`: there is one reference answer, and the last or first box must hold it. `whole`: the
    reference answers are regular expressions, and boxes do not count: one of these must match the
    whole output.

    With `exact_form` the answer must also be written as the reference is, such as in lowest terms:
    8/12 then differs from 2/3. With a `pattern`, the answer is the last match of that regular
    expression in the output (its first group, if it has groups), and boxes are ignored. `verbatim`
    answers are compared as texts without regard to case, not as mathematics.
    """

    texts: tuple[str, ...]
    counts: Counts = "last"
    exact_form: bool = False
    pattern: str | None = None
    verbatim: bool = False

    @property
    def accepted_texts(self) -> tuple[str, ...]:
        """The texts that are each a correct answer: for `all`, one list of every answer."""
        return ("; ".join(self.texts),) if self.counts == "all" else self.texts


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One benchmark problem.

    `answer` is never empty. If a question has several reference answers, `answers` holds them and
    `answer` is the first, or their list if all are required. With `exact_form` the answer must be
    written as the reference is, see `Answers`.
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
        """The reference answers that an output is graded against."""
        return replace(self.answers or Answers((self.answer,)), exact_form=self.exact_form)
