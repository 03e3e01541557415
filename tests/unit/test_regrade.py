"""Laws of the grading of a check, in which equal answers of a problem are graded once."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records.passed import Passed
from core.verdicts import regrade
from core.verdicts.regrade import Regrader
from eval.samples.store import grade_outputs
from eval.sets.problem import Answers, Problem

make = partial(Problem, id="a", question="?", answer="12")
PROBLEMS = [
    make(),
    make(answer="twelve"),
    make(language="zh"),
    make(answer="\\frac{12}{1}", exact_form=True),
    make(answers=Answers(("12", "7"), counts="any")),
]
OUTPUTS = ("\\boxed{12}", "\\boxed{7}", "答案是12", "twelve", "")
GRADED = st.lists(st.tuples(st.sampled_from(OUTPUTS), st.sampled_from(PROBLEMS)), max_size=12)


@given(st.lists(GRADED, max_size=3))
def test_verdicts_are_those_of_each_answer_alone(sets):
    regrader = Regrader(Passed())
    for pairs in sets:
        outputs, problems = [output for output, _ in pairs], [problem for _, problem in pairs]
        assert regrader.grade(outputs, problems) == grade_outputs(outputs, problems)


@pytest.mark.parametrize("sets", [1, 3])
def test_an_answer_is_graded_once(sets, monkeypatch):
    graded = []
    grade_many = regrade.grade_many

    def counted(outputs, *arguments):
        graded.extend(outputs)
        return grade_many(outputs, *arguments)

    monkeypatch.setattr(regrade, "grade_many", counted)
    regrader = Regrader(Passed())
    for _ in range(sets):
        regrader.grade([*OUTPUTS, *OUTPUTS], PROBLEMS[:1] * 2 * len(OUTPUTS))
    assert sorted(graded) == sorted(OUTPUTS)
