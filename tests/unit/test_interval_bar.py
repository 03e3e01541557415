"""An interval on the line of its margin: what lies where, and what is cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.tables.interval_bar import REACH, interval_bar
from eval.tables.report import ClaimResult

NUMBERS = st.floats(-1e6, 1e6)
CLAIM = ClaimResult(
    slug="a",
    statement="A is more than B.",
    compare="a > b",
    verdict="undecided",
    relation=">",
    effect=1.0,
    low=-2.0,
    high=4.0,
    p=0.4,
    seeds=3,
    equal=2.0,
)


def test_places_are_in_margins_on_both_sides_of_the_middle():
    bar = interval_bar(2.0, -4.0, 10.0, 2.0)
    assert (bar.low, bar.middle, bar.high, bar.band) == (40.0, 55.0, 75.0, 5.0)
    assert not bar.low_is_cut
    assert not bar.high_is_cut
    assert bar.text == "        ├──●───┤     "


def test_an_interval_beyond_the_line_is_cut_at_that_end_alone():
    bar = interval_bar(15.0, 5.0, 25.0, 1.0)
    assert (bar.low, bar.high) == (75.0, 100.0)
    assert (bar.low_is_cut, bar.high_is_cut) == (False, True)
    assert bar.text == "         ·│·   ├───●►"


def test_without_a_margin_the_interval_fills_the_line_and_there_is_no_band():
    bar = interval_bar(0.0, -0.2, 0.1, 0.0)
    assert (bar.low, bar.middle, bar.high, bar.band) == (0.0, 50.0, 75.0, 0.0)


@given(st.lists(NUMBERS, min_size=3, max_size=3), st.floats(0, 1e6))
def test_the_middle_lies_between_the_ends_and_all_on_the_line(numbers, margin):
    low, effect, high = sorted(numbers)
    bar = interval_bar(effect, low, high, margin)
    assert 0 <= bar.low <= bar.high <= 100
    assert 0 < bar.middle < 100
    assert len(bar.text) == 21
    if margin and low >= -REACH * margin and high <= REACH * margin:
        assert not bar.low_is_cut
        assert not bar.high_is_cut


@pytest.mark.parametrize("relation", ["<", "<="])
def test_the_right_side_is_the_claims_whichever_way_it_goes(relation):
    """A claim and its mirror, with the effect's sign turned, are one bar."""
    mirrored = replace(CLAIM, relation=relation, effect=-1.0, low=-4.0, high=2.0)
    assert mirrored.bar == CLAIM.bar
    assert CLAIM.bar.middle > 50


def test_a_claim_without_an_interval_has_no_bar():
    assert replace(CLAIM, effect=None, low=None, high=None, p=None).bar is None
