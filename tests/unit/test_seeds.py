"""Means and verdicts over seeds: by hand, against scipy, and symmetric in the sides."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from eval.errors import BadValue
from eval.stats.seeds import LOOKS, detectable, over_seeds, seed_effect

differing = st.lists(st.floats(-100, 100), min_size=2, max_size=8).filter(lambda d: np.std(d) > 0.1)


@given(differing, st.sampled_from([0.05, 0.015]))
def test_without_shared_problems_it_is_students_t(differences: list[float], level: float):
    found, peer = over_seeds(differences), ttest_1samp(differences, 0.0)
    assert found is not None
    assert found.interval(level) == pytest.approx(tuple(peer.confidence_interval(1 - level)))
    assert found.p(0.0) == pytest.approx(peer.pvalue)
    assert found.freedom == len(differences) - 1


@given(differing, st.floats(0.01, 100))
def test_shared_problems_widen_the_interval_and_add_what_more_seeds_cannot_take_away(
    differences: list[float], shared: float
):
    alone, both = over_seeds(differences), over_seeds(differences, shared=shared)
    assert alone is not None
    assert both is not None
    assert both.freedom == alone.freedom
    for level in (0.05, 0.015, 0.4):
        assert both.half_width(level) > alone.half_width(level)
        low, high = both.interval(level)
        assert both.p(low) == pytest.approx(level, rel=1e-6)
        assert both.p(high) == pytest.approx(level, rel=1e-6)
    assert both.p(both.value) == pytest.approx(1)
    many = over_seeds(differences * 1000, shared=shared)
    assert many is not None
    assert many.half_width(0.05) >= 1.9599 * shared**0.5


@pytest.mark.parametrize("level", [0.015, 0.05])
@pytest.mark.parametrize("seeds", [3, 5, 8, 16])
@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.4, 0.7, 1.0, 2.0])
def test_intervals_with_shared_problems_miss_no_more_often_than_their_level(
    level: float, seeds: int, ratio: float
):
    """The true mean is 0; `ratio` is the shared error over the seeds' own."""
    runs = 4000
    random = np.random.default_rng([seeds, int(10 * ratio)])
    common = ratio / seeds**0.5
    values = random.normal(size=(runs, seeds)) + common * random.normal(size=(runs, 1))
    means = [over_seeds(row.tolist(), shared=common**2) for row in values]
    missed = np.mean(
        [mean is not None and abs(mean.value) > mean.half_width(level) for mean in means]
    )
    assert missed <= level + 3 * (level * (1 - level) / runs) ** 0.5


def test_seeds_that_agree_leave_the_error_of_the_problems():
    found = over_seeds([50.0] * 3, shared=4.0)
    assert found is not None
    assert found.interval() == pytest.approx((50 - 1.96 * 2, 50 + 1.96 * 2), abs=1e-3)
    assert over_seeds([50.0] * 3) is None
    assert over_seeds([50.0], shared=4.0) is None


def test_the_looks_share_five_percent():
    assert sum(look.level for look in LOOKS) == pytest.approx(0.05)
    assert [look.seeds for look in LOOKS] == sorted({look.seeds for look in LOOKS})


@pytest.mark.parametrize("seeds", [3, 8])
def test_what_could_be_seen_is_what_a_simulation_sees(seeds: int):
    """At the effect that is named for a known spread, four of five simulated claims are decided."""
    random = np.random.default_rng(0)
    effect = detectable(seeds**-0.5, seeds - 1)
    decided = [
        seed_effect((effect + random.normal(size=seeds)).tolist()).verdict == "held"
        for _ in range(4000)
    ]
    assert np.mean(decided) == pytest.approx(0.80, abs=0.04)


def test_a_tie_is_no_difference_shown_and_small_ones_alone_possible():
    near = [0.3, -0.3, 0.2, -0.1]
    assert seed_effect(near).verdict == "undecided"
    assert seed_effect(near, equal=1.0).verdict == "tie"
    assert seed_effect(near, equal=0.2).verdict == "undecided"
    assert seed_effect(near, 1.0, "~=").verdict == "held"
    assert seed_effect([0.3, 0.35, 0.3], equal=1.0).verdict == "held"
    assert seed_effect([-0.3, -0.35, -0.3], equal=1.0).verdict == "refuted"


def test_a_tie_looks_at_the_interval_of_ninety_percent():
    """Four values of mean 0 and standard error 1: t(3) is 2.353 at 90 % and 3.182 at 95 %."""
    values = (np.array([1, -1, 1, -1]) * 3**0.5).tolist()
    assert seed_effect(values, equal=2.36).verdict == "tie"
    assert seed_effect(values, equal=2.34).verdict == "undecided"
    assert seed_effect(values, 2.36, "~=").verdict == "held"
    assert seed_effect(values, 2.34, "~=").verdict == "undecided"


@pytest.mark.parametrize("op", [">", ">=", "<", "<="])
@pytest.mark.parametrize("level", [0.05, 0.015])
def test_the_verdict_and_p_agree_at_every_level(op: str, level: float):
    random = np.random.default_rng(3)
    for _ in range(300):
        values = (random.normal(1.5, 1, size=3)).tolist()
        found = seed_effect(values, 0.5, op, level=level)
        assert found.p is not None
        assert (found.p < level) == (found.verdict != "undecided")


def test_seed_effect_by_hand():
    found = seed_effect([1.0, 2.0, 3.0])
    half = 4.302653 / 3**0.5
    assert (found.effect, found.low, found.high) == pytest.approx((2, 2 - half, 2 + half))
    assert found.verdict == "undecided"
    assert found.p == pytest.approx(0.0742, abs=1e-4)
    assert seed_effect([2.0, 2.1, 2.2]).verdict == "held"
    assert seed_effect([-2.0, -2.1, -2.2]).verdict == "refuted"
    assert seed_effect([-0.1, -0.2, 0.1], margin=1, op=">=").verdict == "held"
    assert seed_effect([-3.1, -3.2, -3.0], margin=1, op=">=").verdict == "refuted"
    assert seed_effect([-2.0, -2.1, -2.2], op="<").verdict == "held"
    assert seed_effect([0.1, 0.2, 0.15], margin=1, op="<=").verdict == "held"
    assert seed_effect([3.1, 3.2, 3.0], margin=1, op="<=").verdict == "refuted"
    assert seed_effect([0.1, -0.2, 0.15], margin=1, op="~=").verdict == "held"
    assert seed_effect([3.1, 3.2, 3.0], margin=1, op="~=").verdict == "refuted"
    assert seed_effect([-3.1, -3.2, -3.0], margin=1, op="~=").verdict == "refuted"
    assert seed_effect([0.9, 1.1, 1.0], margin=1, op="~=").verdict == "undecided"


def test_one_seed_decides_nothing():
    found = seed_effect([50.0])
    assert (found.effect, found.low, found.high, found.p, found.verdict) == (
        50, None, None, None, "undecided",
    )  # fmt: skip
    assert seed_effect([]).n_seeds == 0


def test_without_spread_only_the_number_of_seeds_speaks():
    assert seed_effect([1.0] * 3).verdict == "undecided"
    assert seed_effect([1.0] * 3).p == 0.25
    assert seed_effect([1.0] * 6).verdict == "held"
    assert seed_effect([0.0] * 20).verdict == "undecided"
    assert seed_effect([0.0] * 3, op=">=").verdict == "undecided"


@given(st.lists(st.floats(-100, 100), max_size=6), st.floats(0, 10))
@settings(max_examples=300)
def test_the_verdict_turns_with_the_sides(differences: list[float], margin: float):
    swapped = [-d for d in differences]
    for op, other in ((">", "<"), (">=", "<="), ("~=", "~=")):
        one, two = seed_effect(differences, margin, op), seed_effect(swapped, margin, other)
        assert one.verdict == two.verdict
        assert one.p == pytest.approx(two.p)


@given(st.lists(st.floats(-100, 100), max_size=6), st.floats(0, 10), st.sampled_from([">", "<"]))
@settings(max_examples=300)
def test_swapped_arms_never_both_hold(differences: list[float], margin: float, op: str):
    one = seed_effect(differences, margin, op)
    other = seed_effect([-d for d in differences], margin, op)
    assert not (one.verdict == other.verdict == "held")
    assert one.effect == pytest.approx(-other.effect)


@pytest.mark.parametrize("op", [">", ">=", "<", "<="])
def test_no_effect_is_rarely_decided(op: str):
    """2000 simulated claims without an effect: 5 % plus four standard errors are decided."""
    random = np.random.default_rng(2)
    decided = [
        seed_effect(random.normal(size=3).tolist(), op=op).verdict != "undecided"
        for _ in range(2000)
    ]
    assert 0.03 < np.mean(decided) < 0.05 + 4 * 0.0049


def test_bad_claims_are_refused():
    for arguments in ({"op": "=="}, {"margin": -1.0}):
        with pytest.raises(BadValue, match="expected >, >=, <, <=, ~="):
            seed_effect([1.0, 2.0], **arguments)
    with pytest.raises(BadValue, match="finite"):
        seed_effect([1.0, float("nan")])
