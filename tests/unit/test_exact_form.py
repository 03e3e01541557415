"""A question that asks for lowest terms is answered by a fraction in lowest terms alone."""

import json
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lm_eval.tasks.hendrycks_math.utils import is_equiv

from core.data.sources import problem_rows
from core.rewards import Accuracy
from core.rewards.cosine import CosineLength
from core.rewards.verifiers import problem_of
from eval.errors import DamagedFile
from eval.grading import grade, grade_many
from eval.lm_tasks.tasks import verdict as lm_verdict
from eval.pocket.steps import step_verdicts
from eval.pocket.suites import DRAWS, SUITES, pocket_problems
from eval.samples.store import grade_outputs
from eval.sets.loading import read_problems
from eval.sets.problem import Answers, Problem

CELLS = [("valid", 0), ("train", 0), *(("test", draw) for draw in (0, DRAWS - 1))]
FACTORS = (2, 3, 7)
WRITTEN = ("\\frac{{{n}}}{{{d}}}", "{n}/{d}", "\\dfrac {{{n}}} {{{d}}}", "x = {n}/{d}", "({n}/{d})")


def exact(problems):
    return [problem for problem in problems if problem.exact_form]


def value(answer):
    return Fraction(answer.replace("\\frac{", "").replace("}{", "/").replace("}", ""))


def unreduced(problem):
    """Equal answers that are not in lowest terms."""
    right = value(problem.answer)
    return [f"\\frac{{{k * right.numerator}}}{{{k * right.denominator}}}" for k in FACTORS]


def boxed(answer):
    return f"2*3=6\nThe answer is \\boxed{{{answer}}}."


@pytest.mark.parametrize(("split", "draw"), CELLS)
def test_every_fraction_is_right_in_lowest_terms_alone(split, draw):
    """The paper's own grading of MATH, by string, says the same of each (arXiv 2103.03874)."""
    asked = exact(pocket_problems("pocket-math", split, draw=draw))
    assert len(asked) == len([p for p in asked if p.subject == "Fractions"]) > 0
    assert any(value(p.answer).denominator == 1 for p in asked) or split == "valid"
    pairs = [(p, answer) for p in asked for answer in (p.answer, *unreduced(p))]
    found = [
        v.correct
        for v in grade_outputs([boxed(answer) for _, answer in pairs], [p for p, _ in pairs])
    ]
    assert found == [answer == p.answer for p, answer in pairs]
    assert found == [is_equiv(answer, p.answer) for p, answer in pairs]
    plain = grade_many([boxed(answer) for _, answer in pairs], [p.answer for p, _ in pairs])
    assert all(v.correct for v in plain)  # equal numbers, where no form is asked for


@pytest.mark.parametrize("suite", SUITES)
def test_every_other_problem_takes_an_equal_number_as_before(suite):
    others = [p for p in pocket_problems(suite, "valid") if not p.exact_form]
    assert len(others) == (225 if suite == "pocket-math" else 300)
    pairs = [(p, answer) for p in others for answer in (p.answer, *unreduced(p))]
    assert all(
        v.correct for v in grade_outputs([boxed(a) for _, a in pairs], [p for p, _ in pairs])
    )


@given(st.integers(1, 99), st.integers(2, 99), st.integers(2, 9), st.sampled_from(WRITTEN))
def test_the_notation_of_the_fraction_is_free(n, d, k, written):
    """The numbers are the form: brackets, spaces, a label and the kind of bar are not."""
    lowest = Fraction(n, d)
    assume(lowest.denominator > 1)
    n, d = lowest.numerator, lowest.denominator
    asked = Answers((f"\\frac{{{n}}}{{{d}}}",), exact_form=True)
    assert grade(boxed(written.format(n=n, d=d)), asked).correct is True
    found = grade(boxed(written.format(n=k * n, d=k * d)), asked)
    assert (found.correct, found.reason) == (False, "equal, not in the form asked for")


@pytest.mark.parametrize(
    ("gold", "given", "right"),
    [
        ("12", "12", True),
        ("12", "12.0", True),
        ("1200", "1,200", True),
        ("12", "24/2", False),
        ("12", "6 + 6", False),
        ("0.5", "0.50", True),
        ("0.5", "1/2", False),
        ("\\frac{1}{2}", "0.5", False),
        ("\\frac{2}{3}", "\\frac23", True),
        ("\\frac{2}{3}", "\\frac{2 \\cdot 4}{12}", False),
        ("\\frac{2}{3}", "8/12 = 2/3", True),
        ("\\frac{2}{3}", "2/3 = 8/12", False),
        ("\\frac{2}{3}", "eight twelfths", False),
        ("\\frac{2}{3}", "12分之8", False),
        ("\\frac{3}{2}", "1\\frac{1}{2}", False),
        ("\\frac{-2}{3}", "-\\frac{2}{3}", True),
        ("\\frac{2}{3}", "\\frac{3}{2}", False),
    ],
)
def test_the_form_of_the_reference_is_asked_for(gold, given, right):
    assert grade(boxed(given), Answers((gold,), exact_form=True)).correct is right


def test_each_of_several_answers_has_its_form():
    halves = Answers(("\\frac{1}{2}", "\\frac{3}{2}"), "all", exact_form=True)
    assert grade(r"\boxed{1/2} and \boxed{3/2}", halves).correct is True
    assert grade(r"\boxed{3/2, 1/2}", halves).correct is True
    assert grade(r"\boxed{1/2} and \boxed{6/4}", halves).correct is False
    assert grade(r"\boxed{2/4, 3/2}", halves).correct is False
    either = Answers(("\\frac{1}{2}", "4"), "any", exact_form=True)
    assert [grade(boxed(a), either).correct for a in ("1/2", "4", "2/4", "8/2")] == [
        True,
        True,
        False,
        False,
    ]


def test_rewards_tasks_and_labels_judge_as_the_benchmark_does():
    """Of problems with and without a form, right, unreduced and other answers."""
    problems, rows = (
        pocket_problems("pocket-math", "valid"),
        problem_rows("pocket-math", "valid", None),
    )
    for answer_of in (lambda p: p.answer, lambda p: unreduced(p)[0], lambda p: f"{p.answer}1"):
        texts = [boxed(answer_of(problem)) for problem in problems]
        right = [verdict.correct for verdict in grade_outputs(texts, problems)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        assert Accuracy()(completions=texts, **columns) == [float(one is True) for one in right]
        paid = CosineLength(9)(completions=texts, completion_ids=[[1]] * len(texts), **columns)
        assert [value > 0 for value in paid if value is not None] == right
        assert [v.correct for v in grade_outputs(texts, [problem_of(row) for row in rows])] == right
        docs = [
            {"answers": [p.answer], "counts": "last", "exact_form": p.exact_form, "language": "en"}
            for p in problems
        ]
        found = [lm_verdict(doc, [text])["acc"] for doc, text in zip(docs, texts, strict=True)]
        assert found == [float(one) for one in right]
        for problem, text, one in zip(problems, texts, right, strict=True):
            if problem.exact_form:
                assert step_verdicts(problem.question, problem.answer, text)[-1][1] is one


def test_a_file_of_problems_says_which_form_is_asked_for(tmp_path):
    row = {"id": "a", "question": "?", "answer": "1/2", "language": "en"}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row | {"exact_form": True}) + "\n")
    assert read_problems(path) == [Problem(**row, exact_form=True)]
    path.write_text(json.dumps(row | {"exact_form": "yes"}) + "\n")
    with pytest.raises(DamagedFile, match="'exact_form': expected bool, got 'yes'"):
        read_problems(path)
    path.write_text(json.dumps(row) + "\n")
    assert read_problems(path) == [Problem(**row)]
