"""Which boxes of an output count: those side by side, all asked, any of several, the first."""

from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading import grade
from eval.sets.problem import Answers

JOINS = [" and ", ", ", " or ", ", and ", r"$ and $", r" \text{ and } ", r"$, $x = "]
several = st.lists(st.integers(-99, 99), min_size=2, max_size=4, unique=True)


@given(several, st.sampled_from(JOINS), st.randoms())
@settings(deadline=None, max_examples=30)
def test_boxes_side_by_side_are_one_answer(values: list[int], join: str, random):
    answer = ", ".join(map(str, values))
    boxes = [rf"\boxed{{{v}}}" for v in values]
    random.shuffle(boxes)
    assert grade(f"First ${boxes[0]}$. So ${join.join(boxes)}$.", answer).correct is True
    assert grade(f"So ${join.join(boxes[1:])}$.", answer).correct is False
    assert grade(f"So ${join.join(boxes)}$.", str(values[0])).correct is False
    assert grade(f"So ${join.join([boxes[0], boxes[0]])}$.", boxes[0][7:-1]).correct is True


@given(several, st.randoms())
@settings(deadline=None, max_examples=20)
def test_when_all_answers_are_asked_the_last_boxes_count_together(values: list[int], random):
    answers = Answers(tuple(map(str, values)), "all")
    random.shuffle(values)
    boxes = [rf"\boxed{{{v}}}" for v in values]
    steps = ". It follows from the other case that it is ".join(boxes)
    listed = rf"\boxed{{{', '.join(map(str, values))}}}"
    for output in (steps, rf"\boxed{{100}} is wrong. {steps}", listed, f"{steps}, so {listed}"):
        assert grade(output, answers).correct is True
    for output in (*boxes, rf"{steps}. No: \boxed{{100}}", listed.replace("}", ", 100}")):
        assert grade(output, answers).correct is False


def test_any_of_several_answers_is_enough_and_no_other():
    answers = Answers(("(3,-5)", "(0,0)"), "any")
    for output in (r"\boxed{(0,0)}", r"\boxed{(3, -5)}", r"\boxed{(3,-5)} or \boxed{(0,0)}"):
        assert grade(output, answers).correct is True
    for output in (r"\boxed{(3,5)}", r"\boxed{(3,-5)} or \boxed{(1,0)}", r"\boxed{(3,-5), (0,0)}"):
        assert grade(output, answers).correct is False


def test_the_first_box_counts_where_the_question_says_so():
    output = r"so $d=\boxed{-3}$. Note: $\boxed{3}$ is also accepted."
    assert grade(output, Answers(("-3",), "first")).correct is True
    assert grade(output, Answers(("3",), "first")).correct is False
    assert grade(output, "3").correct is True
