"""Properties of the official scoring rules of MATH and CMATH, on answers in many notations."""

from itertools import product

from eval.grading import grade_many
from eval.grading.official import official_accuracy
from eval.grading.official_cmath import candidates, matches
from eval.grading.official_math import is_equivalent

# Each row holds notations of one value, all of which occur as answers in MATH.
NOTATIONS = (
    (r"\frac{1}{2}", r"\frac12", "1/2", "0.5", ".5", r"\dfrac{1}{2}", r"\tfrac12"),
    (r"\frac{3}{4}", r"\frac34", "3/4", r"\dfrac34", "0.75"),
    ("-2", "x=-2", "- 2", "-2.0"),
    ("5", "x=5", "5.0", r"5\text{ cm}", r"5\text{ units}"),
    ("10", r"10\%", "10.0"),
    ("90", r"90^\circ", r"90^{\circ}"),
    (r"\sqrt{3}", r"\sqrt3", r"\sqrt 3"),
    (r"2\sqrt{2}", r"2\sqrt2"),
    ("(1,2)", "(1, 2)", r"\left(1,2\right)", r"\left( 1, 2 \right)"),
    ("1000", r"1\!000", "1,000", r"1,\!000"),
    ("18", r"\$18", "18.00"),
    ("x+1", "1+x"),
    (r"\frac{\pi}{2}", r"\frac\pi2", r"\dfrac{\pi}{2}"),
)
ALL = tuple(answer for row in NOTATIONS for answer in row)
# Replies with the answer {a} and another number {b}.
REPLIES = (
    "答案是{a}。",
    "答案是{b}。",
    "先算出{b}个，一共{a}个。",
    "一共{a}个，检查{b}个。",
    "共有{b}个\n答：{a}",
    "共有{a}个\n剩余{b}个",
    "{a}",
    "没有数字",
)
VALUES = (("12", "7"), ("3.14", "2"), ("100", "101"), ("0.6", "5"), ("45%", "45"))


def math_matches() -> list[float]:
    """Return the number of answers in `ALL` that the normal form of MATH matches with each."""
    return [sum(is_equivalent(a, b) for b in ALL) for a in ALL]


def equal_texts() -> list[float]:
    """Return the number of answers in `ALL` that are the same text as each."""
    return [ALL.count(a) for a in ALL]


def lost_matches() -> int:
    """Count the pairs that the normal form of MATH matches and the strict grader does not."""
    pairs = [(a, b) for a, b in product(ALL, ALL) if is_equivalent(a, b)]
    verdicts = grade_many([rf"\boxed{{{b}}}" for _, b in pairs], [a for a, _ in pairs])
    return sum(verdict.correct is not True for verdict in verdicts)


def cmath_accuracy(last: int) -> list[float]:
    """Return the accuracy of each of `REPLIES` over `VALUES`: any of the `last` numbers counts."""
    return [
        sum(
            any(matches(a, text) for text in candidates(reply.format(a=a, b=b))[-last:])
            for a, b in VALUES
        )
        / len(VALUES)
        for reply in REPLIES
    ]


def gain_without_errors(most: int) -> list[float]:
    """Return official minus plain accuracy for all counts of up to `most` replies.

    The counts are those of right replies, wrong ones and errors, not all of them errors. The plain
    accuracy counts errors as wrong.
    """
    return [
        (official_accuracy([True] * right + [False] * wrong + [None] * errors) or 0.0)
        - right / (right + wrong + errors)
        for right, wrong, errors in product(range(most + 1), repeat=3)
        if right + wrong > 0 and right + wrong + errors <= most
    ]
