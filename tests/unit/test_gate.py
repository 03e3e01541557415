"""Whether new runs score lower than accepted ones: rates within their bounds, and laws."""

from dataclasses import replace

import numpy as np
import pytest

from eval.stats.gate_rates import (
    PLANTED,
    SEEDS,
    SPREADS,
    Planted,
    half_power_drop,
    rate,
    simulate_check,
)
from eval.stats.regressions import CHANGED, find_drops

NOTHING, *DROPS = PLANTED
SAME, TOGETHER, *_ = SPREADS
N = 200
# A bound is left by three standard errors of the simulation: by chance once in 700 times.


def within(bound):
    return 3 * (bound * (1 - bound) / N) ** 0.5


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("spread", SPREADS, ids=lambda s: s.name)
def test_a_false_alarm_is_rare(spread, seeds):
    found = rate(NOTHING, spread, seeds, N, np.random.default_rng(1)).alarm_rate
    assert found <= 0.05 + within(0.05)


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_drop_that_the_page_names_is_found_in_half_of_the_checks(seeds):
    """A little more often: the spread is uncertain, and the other tests find some too."""
    planted = Planted("half", half_power_drop(seeds), alone=False, bound=0.5)
    found = rate(planted, TOGETHER, seeds, N, np.random.default_rng(2)).alarm_rate
    assert found == pytest.approx(0.5, abs=0.04 + within(0.5))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("planted", DROPS, ids=lambda p: p.name)
def test_with_the_same_seeds_a_planted_drop_is_always_found(planted, seeds):
    assert rate(planted, SAME, seeds, 50, np.random.default_rng(3)).alarm_rate == 1.0


def found(seed, change):
    """The drops in one simulated check whose differences were changed."""
    rows = simulate_check(NOTHING, TOGETHER, 3, np.random.default_rng(seed))
    return list(find_drops([replace(row, delta=change(row)) for row in rows]))


@pytest.mark.parametrize("seed", range(5))
def test_what_rises_is_no_drop(seed):
    assert found(seed, lambda row: abs(row.delta)) == []


def test_a_drop_is_named_where_it_is():
    """Nothing varies but what fell."""
    (everything, *arms) = found(0, lambda _: -8.0)
    assert (everything.scope, everything.delta) == ("all arms together", pytest.approx(-8.0))
    assert {drop.scope for drop in arms} <= {f"arm {arm}" for arm in range(5)}
    (arm,) = found(0, lambda row: -12.0 * (row.arm == "2"))
    assert (arm.scope, arm.delta) == ("arm 2", pytest.approx(-12.0))
    (suite,) = found(0, lambda row: -10.0 * ((row.arm, row.suite) == ("2", "1")))
    assert suite.scope == "arm 2, 1"
    assert everything.largest_loss.startswith("0, 0 by -8.0")


def test_copies_of_an_arm_add_nothing_to_the_test_over_all_arms():
    """Arms that move together are one witness, however many they are."""
    rows = [
        row
        for row in simulate_check(NOTHING, TOGETHER, 3, np.random.default_rng(0))
        if row.arm == "0"
    ]
    fallen = [replace(row, delta=row.delta - 8.0) for row in rows]
    copies = [replace(row, arm=str(arm)) for arm in range(9) for row in fallen]
    (one, *_), (many, *_) = list(find_drops(fallen)), list(find_drops(copies))
    assert one.scope == many.scope == "all arms together"
    assert (many.delta, many.p) == pytest.approx((one.delta, one.p))


def test_the_fewer_answers_changed_the_surer_is_a_drop():
    rows = simulate_check(NOTHING, SAME, 3, np.random.default_rng(0))

    def p(changed):
        drops = find_drops([replace(row, delta=-7.0, changed=changed) for row in rows])
        return next(drops).p

    assert p(0.07) < p(0.1) < p(CHANGED) == p(0.3)


def test_one_run_is_compared_too_and_none_is_no_drop():
    row = simulate_check(NOTHING, SAME, 3, np.random.default_rng(0))[0]
    assert [drop.scope for drop in find_drops([replace(row, delta=-20.0, changed=0.2)])] != []
    assert list(find_drops([replace(row, delta=-2.0, changed=0.2)])) == []
    assert list(find_drops([])) == []
