"""Whether new runs score lower than accepted ones: rates within their bounds, and laws."""

from dataclasses import replace

import numpy as np
import pytest

from eval.stats.gate_rates import PLANTED, SPREADS, drawn, rate
from eval.stats.regressions import found_drops

NOTHING, ONE, TWO, FIVE, SIX = PLANTED
SEEDS = "other seeds"
N = 400
# A bound is left by three standard errors of the simulation: by chance once in 700 times.


@pytest.mark.parametrize("spread", SPREADS)
def test_a_false_alarm_is_rare(spread):
    slack = 3 * (0.05 * 0.95 / N) ** 0.5
    assert rate(NOTHING, spread, N, np.random.default_rng(1)).found <= 0.05 + slack


@pytest.mark.parametrize("planted", [ONE, TWO, SIX], ids=lambda p: p.name)
def test_a_planted_drop_is_found_as_often_as_it_has_to_be(planted):
    found = rate(planted, SEEDS, N, np.random.default_rng(2)).found
    assert found >= planted.bound - 3 * (planted.bound * (1 - planted.bound) / N) ** 0.5


def test_a_drop_of_answers_alone_is_always_found():
    """1 point everywhere on the same seeds: 600 of 60,000 answers lost and none won."""
    for planted in (ONE, TWO, FIVE):
        assert rate(planted, "the same seeds", 50, np.random.default_rng(3)).found == 1.0


def found(seed, change):
    """The drops in one drawn check whose differences were changed."""
    rows = drawn(NOTHING, SPREADS[SEEDS], np.random.default_rng(seed))
    return list(found_drops([replace(row, delta=change(row)) for row in rows]))


@pytest.mark.parametrize("seed", range(5))
def test_what_rises_is_no_drop(seed):
    assert found(seed, lambda row: row.delta + 10) == []


def test_a_drop_is_named_where_it_is():
    """Nothing varies but what fell."""
    (everything, *arms) = found(0, lambda _: -3.0)
    assert (everything.what, everything.delta) == ("all arms together", pytest.approx(-3.0))
    assert {drop.what for drop in arms} <= {f"arm {arm}" for arm in range(5)}
    (arm,) = found(0, lambda row: -3.0 * (row.arm == "2"))
    assert (arm.what, arm.delta) == ("arm 2", pytest.approx(-3.0))
    (suite,) = found(0, lambda row: -6.0 * ((row.arm, row.suite) == ("2", "1")))
    assert suite.what == "arm 2, 1"
    assert everything.most.startswith("0, 0 by -3.0")


def test_one_run_is_compared_too_and_none_is_no_drop():
    row = drawn(NOTHING, SPREADS["the same seeds"], np.random.default_rng(0))[0]
    assert [drop.what for drop in found_drops([replace(row, delta=-20.0)])] != []
    assert list(found_drops([replace(row, delta=-2.0)])) == []
    assert list(found_drops([])) == []
