"""Reductions of curves: by hand, and the laws that each must keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims import (
    START,
    Claim,
    MissingMeasure,
    best,
    completions_to,
    drawdown,
    early,
    final,
    fluctuation,
    gain,
    largest,
    late,
    mean_along,
    middle,
    share_of_steps,
    steps_to,
    tokens_to,
    when,
)
from core.claims.thresholds import Censored
from core.verdicts.judge import judge_claim

CURVE = [(1, 4.0), (2, 1.0), (3, 3.0), (4, 8.0), (5, 6.0), (6, 2.0), (7, 5.0), (8, 7.0), (9, 5.0)]
RECORD = {
    "digest": "abc",
    "curves": {
        "m": CURVE,
        "held_out/accuracy": [(3, 10.0), (6, 30.0), (9, 20.0)],
        "num_tokens": [(step, 100 * step) for step, _ in CURVE],
        "num_completions": [(step, 16 * step) for step, _ in CURVE],
    },
}
values = st.floats(-1e6, 1e6)
curves = st.lists(values, min_size=1, max_size=30).map(lambda found: list(enumerate(found, 1)))


def of(measure, points):
    return measure.read({"curves": {measure.metric: points}}, "arm")


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (early("m"), 8 / 3),
        (late("m"), 17 / 3),
        (early("m", 0.5), 4.0),
        (late("m", 0.5), 5.0),
        (late("m", 0), 41 / 9),
        (middle("m"), 4.75),  # steps 3 to 6
        (final("m"), 5.0),
        (largest("m"), 8.0),
        (best("m", "held_out/accuracy"), 2.0),
        (gain("m"), 1.0),
        (gain("m", 0.5, 1.0), -3.0),
        (fluctuation("m"), (4 / 3) ** 0.5),
        (fluctuation("m", 0), 5.2777**0.5),
        (drawdown("m"), 6.0),
        (share_of_steps("m", ">=", 5.0), 5 / 9),
        (share_of_steps("m", "<", 2.0), 1 / 9),
        (share_of_steps("m", ">", 5.0, 0.5), 2 / 5),
    ],
)
def test_a_reduction_by_hand(measure, expected):
    assert measure.read(RECORD, "a") == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (steps_to("m", 5.0), 4),
        (tokens_to("m", 5.0), 400),
        (completions_to("m", 5.0), 64),
        (when("held_out/accuracy", "m", 5.0), 10.0),
        (when("m", "held_out/accuracy", 15), 2.0),
    ],
)
def test_what_is_read_at_a_threshold_by_hand(goal, expected):
    assert goal.of("a").values([{"a": RECORD}]) == [expected]


@given(curves, st.floats(0.01, 2.0), values)
def test_the_mean_along_a_curve_is_that_of_a_line_over_what_the_curve_passes(points, share, level):
    """A line over the other metric has the mean of its ends, whichever steps were logged."""
    top = max(value for _, value in points)
    threshold = points[0][1] + share * (top - points[0][1])
    line = [(step, level - 2 * value) for step, value in points]
    record = {"curves": {"x": points, "y": line}}
    goal = mean_along("y", "x", threshold).of("a")
    if threshold > top:
        with pytest.raises(Censored):
            goal.values([{"a": record}])
        return
    expected = level - (points[0][1] + threshold)
    assert goal.values([{"a": record}])[0] == pytest.approx(expected, rel=1e-6, abs=1e-5)


@given(values, st.integers(1, 30))
def test_of_a_constant_every_level_is_it_and_every_change_is_nothing(value, length):
    points = [(step, value) for step in range(1, length + 1)]
    for level in (early("m"), late("m"), final("m"), largest("m")):
        assert of(level, points) == pytest.approx(value)
    assert of(gain("m"), points) == of(drawdown("m"), points) == 0
    assert of(fluctuation("m"), points) == pytest.approx(0, abs=1e-6)


@given(curves)
def test_bounds_and_order(points):
    found = [value for _, value in points]
    assert of(largest("m"), points) == max(found)
    assert min(found) - 1e-6 <= of(late("m"), points) <= max(found) + 1e-6
    assert 0 <= of(drawdown("m"), points) <= max(found) - min(found)
    assert of(fluctuation("m"), points) >= 0
    assert of(drawdown("m"), sorted(points, key=lambda point: point[1])) == 0


@given(curves, values)
def test_the_shares_of_either_side_make_one(points, threshold):
    above = of(share_of_steps("m", ">=", threshold), points)
    below = of(share_of_steps("m", "<", threshold), points)
    assert above + below == pytest.approx(1)


@given(curves, values)
def test_a_shift_moves_levels_by_it_and_changes_not_at_all(points, shift):
    moved = [(step, value + shift) for step, value in points]
    for level in (early("m"), late("m"), final("m"), largest("m")):
        assert of(level, moved) == pytest.approx(of(level, points) + shift, abs=1e-5)
    for change in (gain("m"), drawdown("m"), fluctuation("m")):
        assert of(change, moved) == pytest.approx(of(change, points), abs=1e-5)


@given(curves, st.lists(values, min_size=2, max_size=5))
def test_a_higher_threshold_is_never_reached_sooner(points, thresholds):
    def reached(threshold):
        runs = {"a": {"curves": {"m": points}}}
        try:
            return steps_to("m", threshold).of("a").values([runs])[0]
        except Censored:
            return float("inf")

    steps = [reached(threshold) for threshold in sorted(thresholds)]
    assert steps == sorted(steps)
    assert reached(max(value for _, value in points)) < float("inf")


def test_a_threshold_may_be_what_another_arm_comes_to():
    slow = {"curves": {"m": [(1, 0.0), (2, 3.0), (10, 5.0)]}}
    cases = [{"fast": RECORD, "slow": slow}]
    goal = steps_to("m", final("m").of("slow"))
    assert goal.of("fast").values(cases) == [4]
    assert goal.of("slow").values(cases) == [10]


def test_a_censored_value_is_never_compared():
    low = {"digest": "low", "curves": {"m": [(1, 0.0), (9, 4.0)]}}
    by_arm = {"a": {0: RECORD, 1: RECORD}, "b": {0: RECORD, 1: low}}
    goal = steps_to("m", 5.0)
    for test in (goal.of("a") < goal.of("b"), goal.of("b") > 2, goal.of("b") - goal.of("a") > 0):
        found = judge_claim(Claim("c", "s", test, healthy=()), by_arm)
        assert (found["verdict"], found["effect"]) == ("undecided", None)
        assert "is not reached in the 9 steps of record low" in found["reason"]


@pytest.mark.parametrize("measure", [late("x"), best("m", "x"), best("x", "m"), drawdown("x")])
def test_a_curve_that_is_not_there_is_missing(measure):
    with pytest.raises(MissingMeasure, match="has no curve 'x'"):
        measure.read(RECORD, "a")


def test_the_starting_model_has_no_curve():
    with pytest.raises(MissingMeasure, match="arm start has no curve 'm'"):
        late("m").read(RECORD, START)
