"""The end that a saturating curve foretells: exact where the curve is one."""

import pytest

from core.claims import BadClaim, MissingMeasure, foretold
from core.claims.fits import saturating

STEPS = range(0, 37, 4)


def record(points):
    return {"curves": {"held_out/accuracy": list(points)}}


def read(points, **options):
    return foretold("held_out/accuracy", **options).read(record(points), "arm")


@pytest.mark.parametrize("top", [20.0, 80.0, 95.0])
@pytest.mark.parametrize("middle", [0.1, 0.3, 0.9])
@pytest.mark.parametrize("exponent", [0.7, 2.0, 4.0])
def test_of_such_a_curve_it_is_its_last_point(top, middle, exponent):
    def at(step):
        return saturating(step / 36, 50.0, top, middle, exponent) if step else 50.0

    assert read((step, at(step)) for step in STEPS) == pytest.approx(at(36), abs=0.1)


def test_half_way_to_its_end_it_is_half_way_up():
    assert saturating(0.3, 40.0, 90.0, 0.3, 5.0) == pytest.approx(65.0)
    assert saturating(1e9, 40.0, 90.0, 0.3, 1.0) == pytest.approx(90.0)


def test_what_comes_after_the_fitted_part_counts_for_nothing():
    points = [(step, 50.0 + step / 2) for step in STEPS]
    other = [(step, value if step <= 18 else 0.0) for step, value in points]
    assert read(points) == read(other)
    assert read(points, end=1.0) != read(other, end=1.0)


def test_a_curve_that_rises_is_foretold_to_end_above_where_it_is_known_and_below_100():
    assert 58.0 < read((step, 50.0 + step / 2) for step in STEPS) <= 100.0


def test_a_curve_of_too_few_points_has_none():
    with pytest.raises(
        MissingMeasure, match=r"2 points after the first and up to 0\.5 of training"
    ):
        read([(0, 50.0), (1, 51.0), (2, 52.0), (4, 53.0)])


def test_a_fraction_is_one():
    with pytest.raises(BadClaim, match="fractions of training"):
        foretold("held_out/accuracy", 2.0)
