"""The accuracy at the end and the mean of a curve, by hand."""

import pytest

from core.claims import MissingMeasure, ended, late, whole

CURVE = [[0, 20.0], [1, 30.0], [2, 40.0], [3, 50.0]]
RECORD = {
    "curves": {"held_out/accuracy": CURVE},
    "config": {"heldout_problems": {"value": 300}},
    "scores": [{"mirrors": "math", "metric": "top1", "value": 60.0, "n": 900}],
    "start_scores": [{"mirrors": "math", "metric": "top1", "value": 24.0, "n": 900}],
}


def test_the_end_is_the_last_third_and_the_test_by_their_numbers_of_problems():
    measure = ended("math")
    assert measure.read(RECORD, "a") == pytest.approx((300 * 50 + 900 * 60) / 1200)
    assert measure.stand(RECORD, "a") == pytest.approx(((300 * 20 + 900 * 24) / 1200, 57.5))
    assert str(measure) == "ended(math)"
    assert {(need.kind, need.name) for need in measure.needs} == {
        ("curve", "held_out/accuracy"),
        ("score", "math"),
    }
    with pytest.raises(MissingMeasure, match="heldout_problems"):
        measure.read({**RECORD, "config": {}}, "a")


def test_the_whole_curve_is_the_mean_of_all_its_points():
    assert whole("held_out/accuracy").read(RECORD, "a") == 35.0
    assert late("held_out/accuracy", 0).read(RECORD, "a") == 35.0
