"""Conditions on one variable are compared as the sets that they describe."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading import grade

OUTSIDE = (
    "|x {c}| > {r}", "{r} < |x {c}|", r"\lvert x {c} \rvert > {r}", r"\{{y : |y {c}| > {r}\}}",
    r"\{{x \in \mathbb{{R}} \mid |x {c}| > {r}\}}", "x < {low} or x > {high}",
    r"x > {high} \text{{ or }} x < {low}", r"(-\infty, {low}) \cup ({high}, \infty)",
)  # fmt: skip
INSIDE = (
    "|x {c}| < {r}", "|2x {c2}| < {r2}", r"\left|x {c}\right| < {r}", "{low} < x < {high}",
    "({low}, {high})", r"\{{x \mid {low} < x < {high}\}}", r"x \in ({low}, {high})",
)  # fmt: skip
EXCEPT = (
    r"x \ne {low}, {high}", r"x \neq {low} \text{{ and }} x \neq {high}", "x ≠ {high}, {low}",
    r"\mathbb{{R}} \setminus \{{{low}, {high}\}}", r"(-\infty, \infty) - \{{{high}, {low}\}}",
    r"\mathbb R \backslash \{{{low}, {high}\}}",
    r"(-\infty, {low}) \cup ({low}, {high}) \cup ({high}, \infty)",
)  # fmt: skip


def written(shape: str, middle: int, radius: int) -> str:
    return shape.format(
        c=f"{-middle:+}",
        r=radius,
        c2=f"{-2 * middle:+}",
        r2=2 * radius,
        low=middle - radius,
        high=middle + radius,
    )


@pytest.mark.parametrize("shapes", [OUTSIDE, INSIDE, EXCEPT], ids=["outside", "inside", "except"])
@given(st.integers(-99, 99), st.integers(1, 99), st.data())
@settings(deadline=None, max_examples=40)
def test_one_set_has_many_notations(shapes: tuple[str, ...], middle: int, radius: int, data):
    gold, given = (data.draw(st.sampled_from(shapes)) for _ in range(2))
    answer = written(gold, middle, radius)
    assert grade(rf"\boxed{{{written(given, middle, radius)}}}", answer).correct is True
    assert grade(rf"\boxed{{{written(given, middle + 1, radius)}}}", answer).correct is False
    assert grade(rf"\boxed{{{written(given, middle, radius + 1)}}}", answer).correct is False
    for others in {OUTSIDE, INSIDE, EXCEPT} - {shapes}:
        other = written(data.draw(st.sampled_from(others)), middle, radius)
        assert grade(rf"\boxed{{{other}}}", answer).correct is False


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=6, unique=True), st.randoms())
@settings(deadline=None, max_examples=30)
def test_points_taken_out_of_an_interval_leave_those_between(values: list[int], random):
    low, *points, high = sorted(values)
    union = r" \cup ".join(f"({a}, {b})" for a, b in pairwise([low, *points, high]))
    random.shuffle(points)
    inside = ", ".join(map(str, [*points, high, high + 7]))
    for notation in (
        rf"({low}, {high}) \setminus \{{{inside}\}}",
        rf"({low}, {high}] - \{{{inside}\}}",
    ):
        assert grade(rf"\boxed{{{notation}}}", union).correct is True
    assert grade(rf"\boxed{{({low}, {high})}}", union).correct is False
    assert grade(rf"\boxed{{({low}, {high}] \setminus \{{{points[0]}\}}}}", union).correct is False


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        (r"(0,9) \cup (9,36)", r"(0, 36) \setminus \{9\}", True),
        (r"(0,9) \cup (9,36)", r"0 < x < 36 \text{ and } x \ne 9", True),
        (r"(0,9) \cup (9,36)", r"[0, 36) \setminus \{9\}", False),
        (r"(0,1) \cup (1,2) \cup (3,4)", r"((0,2) \cup (3,4)) \setminus \{1\}", True),
        (r"(0,5]", r"[0,5] \setminus \{0\}", True),
        (r"(-\infty,-\sqrt{2}] \cup [\sqrt{2},\infty)", r"|x| \ge \sqrt{2}", True),
        (r"(-\infty,-\sqrt{2}] \cup [\sqrt{2},\infty)", r"|x| > \sqrt{2}", False),
        (r"(-\infty,\pi) \cup (\pi,\infty)", r"x \ne \pi", True),
        (r"(-\infty,\infty)", r"\mathbb{R}", True),
        (r"(-1,2)", r"|2x - 1| < 3", True),
        ("3", r"x \ne 3", False),
        (r"\{1,2\}", "[1,2]", False),
    ],
)
def test_sets(answer: str, given: str, right: bool):
    assert grade(rf"\boxed{{{given}}}", answer).correct is right
    assert grade(rf"\boxed{{{answer}}}", given).correct is right
