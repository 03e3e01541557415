import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_records import score

from eval.errors import BadValue
from eval.tables.seed_intervals import mean_cell, mean_interval


def test_one_seed_keeps_its_interval():
    assert mean_interval([50.0], [46.0], [54.5], shared=True) == (50.0, 46.0, 54.5)


def test_equal_seeds_keep_the_interval_of_the_problems():
    found = mean_interval([50.0] * 3, [46.0] * 3, [54.0] * 3, shared=True)
    assert found == pytest.approx((50.0, 46.0, 54.0))


def test_seeds_with_problems_of_their_own_have_students_interval():
    # s = 1, S = 3: t(2) s / sqrt(3) = 4.302653 / 1.732051 = 2.484138
    found = mean_interval([49.0, 50.0, 51.0], [45.0] * 3, [55.0] * 3, shared=False)
    assert found == pytest.approx((50.0, 50 - 2.484138, 50 + 2.484138), abs=1e-5)


def test_problems_that_all_seeds_share_widen_the_interval():
    # (4.302653**2 / 3 + 4**2) ** 0.5 = 4.708603
    found = mean_interval([49.0, 50.0, 51.0], [46.0] * 3, [54.0] * 3, shared=True)
    assert found == pytest.approx((50.0, 50 - 4.708603, 50 + 4.708603), abs=1e-3)


def test_seeds_share_their_problems_unless_each_names_a_draw_of_its_own():
    rows = [score("math", value) | {"low": value - 4, "high": value + 4} for value in (49.0, 51.0)]
    same = mean_cell(rows)
    own = mean_cell([row | {"draw": draw} for draw, row in enumerate(rows)])
    once = mean_cell([row | {"draw": 3} for row in rows])
    assert same == once
    assert (own.low, own.high) != (same.low, same.high)


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 20), st.floats(0, 20)), min_size=1, max_size=8
    ),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_the_interval_ignores_the_order_of_seeds_and_stays_in_range(seeds, random, shared):
    def interval(parts):
        return mean_interval(
            [v for v, _, _ in parts],
            [max(0, v - a) for v, a, _ in parts],
            [min(100, v + b) for v, _, b in parts],
            shared=shared,
        )

    mean, low, high = interval(seeds)
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 100
    assert interval(random.sample(seeds, len(seeds))) == pytest.approx((mean, low, high))


def test_seeds_on_different_problems_are_refused():
    with pytest.raises(BadValue, match=r"\[250, 5000\]"):
        mean_cell([score("math", 50.0), score("math", 50.0, n=250, limited=True)])


@pytest.mark.parametrize("field", ["value", "low", "high", "n"])
def test_a_score_without_a_field_is_refused(field):
    with pytest.raises(BadValue, match=field):
        mean_cell([score("math", 50.0) | {field: None}])


def test_a_part_of_the_benchmark_of_a_plugin_enters_no_table_unmarked(install):
    made = (
        "from eval.sets.benchmarks import Benchmark\nSUITE = Benchmark(name='far', title='', n=7)\n"
    )
    whole = score("far", 50.0, n=7)
    part = whole | {"n": 5}
    assert mean_cell([part]).n == 5  # nothing is known of it
    install("plug", {"far": "far:SUITE"}, {"far": made}, group="repro.benchmarks")
    assert mean_cell([whole]).n == 7
    assert mean_cell([part | {"limited": True}]).n == 5
    with pytest.raises(BadValue, match="the score covers 5 problems, but the set has 7"):
        mean_cell([part])
