"""The pocket world: distinct forms, right solutions, programs that compute the answer."""

import io
import re
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.errors import BadValue, UnknownName
from eval.grading import grade
from eval.pocket.exercises import SHAPES, draw_expression
from eval.pocket.plan import Distractor, Plan, Step, StepResult
from eval.pocket.solver import Solver
from eval.pocket.steps import evaluate, step_verdicts
from eval.pocket.suites import ALONE, DRAWS, PAIRED, SIZES, STORIES, SUITES, drafts, owning_split
from eval.pocket.suites import pocket_problems as problems

CELLS = [
    *((suite, "valid", 0) for suite in SUITES),
    *(("pocket-math", "test", draw) for draw in (0, DRAWS - 1)),
    ("pocket-math", "train", 0),
    ("pocket-cmath", "test", 0),
    ("pocket-gsm8k", "test", 0),
]


@cache
def every_draft():
    return [(suite, made) for suite in SUITES for made in drafts(suite, "valid")]


def in_math():
    return [made for suite, made in every_draft() if suite == "pocket-math"]


FROM_EVERY = st.deferred(lambda: st.sampled_from(every_draft()))


@pytest.mark.parametrize(("suite", "split", "draw"), CELLS)
def test_forms_are_distinct_and_their_splits_alone(suite, split, draw):
    """With one owner of every form, no two splits, draws or languages can share one."""
    forms = [made.form for made in drafts(suite, split, draw)]
    assert len(set(forms)) == len(forms) == SIZES[split]
    told = "pocket-gsm8k" if suite == PAIRED and split != "train" else suite
    cell = f"{told} {split} {draw}" if split == "test" else f"{told} {split}"
    assert {owning_split(form) for form in forms} == {cell}


def test_the_shares_of_the_cells_are_whole():
    assert sum(STORIES.values()) == sum(ALONE.values()) == 1000


def test_counted_over_all_splits_no_form_occurs_twice():
    seen = [
        made.form
        for suite, split, draw in CELLS
        if suite != PAIRED or split == "train"
        for made in drafts(suite, split, draw)
    ]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(("split", "draw"), [("valid", 0)])
def test_the_chinese_twins_have_the_same_answers(split, draw):
    english, chinese = (drafts(suite, split, draw) for suite in ("pocket-gsm8k", PAIRED))
    assert [d.answer for d in english] == [d.answer for d in chinese]
    assert [d.form for d in english] == [d.form for d in chinese]


@given(st.sampled_from(drafts("pocket-gsm8k", "valid")), st.integers(0, 10**6))
def test_words_and_distractors_change_no_form(made, seed):
    other = replace(made, write_question=lambda: f"told anew {seed}")
    assert other.form == made.form
    lure = Distractor(seed % 4, 2 + seed % 8)
    plain = Plan(tuple(step._replace(distractor=lure) for step in made.plan.steps))
    assert plain.form == made.plan.form


def test_order_of_sums_and_products_changes_no_form():
    one = Plan((Step(7, "+", 5), Step(StepResult(0), "-", 2), Step(StepResult(1), "+", 3, unit=2)))
    other = Plan((Step(6, "+", 7), Step(StepResult(0), "+", 5), Step(StepResult(1), "-", 2)))
    assert one.form == other.form
    products = [Plan((Step(a, "*", b), Step(c, "*", d), Step(StepResult(0), "+", StepResult(1))))
                for a, b, c, d in ((2, 3, 4, 5), (5, 4, 3, 2))]  # fmt: skip
    assert products[0].form == products[1].form
    assert one.form != Plan((Step(7, "-", 5), Step(StepResult(0), "+", 2))).form


@pytest.mark.parametrize("known", [True, False])
def test_every_step_of_every_solution_is_right(known):
    """Without the solution a judge cannot know a pair: there the exercises are judged."""
    for suite, made in every_draft():
        if known or suite == "pocket-math":
            lines = made.solution if known else None
            verdicts = step_verdicts(made.question, made.answer, made.solution, lines)
            assert len(verdicts) == len(made.plan.lines) + 1, (suite, made.solution)
            assert all(right for _, right in verdicts), (suite, made.solution)


def test_solution_and_transcript_are_graded_right():
    for _, made in every_draft()[::7]:
        for text in (made.solution, made.transcript):
            assert grade(text, made.answer, made.language).correct is True, text


def test_every_program_prints_the_answer():
    for _, made in every_draft()[::3]:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(made.plan.program, {})  # the generator's own program
        assert f"```output\n{printed.getvalue().strip()}\n```" in made.transcript


@given(st.integers(), st.sampled_from(sorted(SHAPES)))
def test_an_expression_is_worked_out_as_python_does(seed, level):
    text, plan = draw_expression(Random(seed), level)
    assert plan.values[-1] == eval(text)  # the generator's own expression
    assert len(plan.lines) == level


def test_an_equation_holds_for_its_answer():
    for made in in_math():
        if made.kind == "equation":
            left, right = re.findall(r"\$([^$]* = \d+)\$", made.question)[0].split(" = ")
            times = re.sub(r"(\d)(?=[x(])", r"\1*", left)
            assert eval(times, {"x": int(made.answer)}) == int(right), made.question


def test_levels_are_the_lines_of_the_solution():
    for suite, made in every_draft():
        assert made.level == len(made.solution.splitlines()) - 1, suite
    assert {made.level for made in in_math()} == {2, 3, 4, 5}


@given(FROM_EVERY, st.integers(0, 10**9))
def test_labels_of_a_fallible_solution_are_exact(case, seed):
    """What the solver says of its lines is what a judge with the right solution says."""
    _, made = case
    random = Random(seed)
    told = Solver(errs=lambda _k, _c, rate: random.random() < rate, language=made.language)
    found = told.solve(made)
    judged = step_verdicts(made.question, made.answer, found.text, made.solution)
    assert [right for _, right in judged] == [
        *(right for _, right in found.lines),
        found.answer == made.answer,
    ]


@given(FROM_EVERY)
def test_a_solver_without_mistakes_writes_the_right_solution(case):
    made = case[1]
    told = Solver(errs=lambda _k, _c, _r: False, language=made.language).solve(made)
    assert told.text == made.solution
    assert all(right for _, right in told.lines)


@given(FROM_EVERY, st.data())
def test_another_result_makes_its_step_wrong(case, data):
    made = case[1]
    lines = made.solution.split("\n")
    index = data.draw(st.integers(0, len(made.plan.lines) - 1))
    lines[index] += "1"
    verdicts = step_verdicts(made.question, made.answer, "\n".join(lines), made.solution)
    assert verdicts[index][1] is False


def test_without_a_solution_a_step_from_nowhere_is_wrong():
    assert step_verdicts("Tom has 3 and 4.", "7", "3+4=7")[0][1] is True
    assert step_verdicts("Tom has 3 and 4.", "7", "3+5=8")[0][1] is False


def test_a_right_line_counts_once_where_the_solution_is_known():
    found = step_verdicts("3 and 4", "7", "3+4=7\n3+4=7\n4+3=8\n", "3+4=7\nThe answer is 7.")
    assert [right for _, right in found] == [True, False, False]


def test_offsets_are_the_ends_of_the_lines():
    text = "3+4=7\nso\nThe answer is \\boxed{7}."
    ends = [offset for offset, _ in step_verdicts("3 4", "7", text)]
    assert ends == [6, len(text)]
    assert all(a < b for a, b in pairwise(ends))


@pytest.mark.parametrize("text", ["2**9", "__import__('os')", "1/0", "x", "", "(" * 60, "1e999"])
def test_what_is_no_plain_arithmetic_has_no_value(text):
    assert evaluate(text) is None


def test_unknown_suite_split_size_and_draw_are_refused():
    with pytest.raises(UnknownName, match="pocket-gsm8k"):
        problems("pocket-gsm", "test")
    with pytest.raises(UnknownName, match="split 'tset'"):
        problems("pocket-gsm8k", "tset")
    with pytest.raises(BadValue, match="1001 problems"):
        problems("pocket-gsm8k", "test", 1001)
    with pytest.raises(BadValue, match="draw=10"):
        problems("pocket-gsm8k", "test", draw=10)
    with pytest.raises(BadValue, match="draw=1 of pocket-math/valid"):
        problems("pocket-math", "valid", draw=1)
