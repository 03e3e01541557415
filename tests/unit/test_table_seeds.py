import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_records import score

from eval.errors import BadValue
from eval.tables.seeds import mean_cell, mean_interval


def test_one_seed_keeps_its_interval():
    assert mean_interval([50.0], [46.0], [54.5]) == (50.0, 46.0, 54.5)


def test_equal_seeds_keep_the_interval_of_the_problems():
    assert mean_interval([50.0] * 3, [46.0] * 3, [54.0] * 3) == (50.0, 46.0, 54.0)


def test_spread_between_seeds_widens_the_interval_by_its_t_interval():
    # s = 1, S = 3: t(2) s / sqrt(3) = 4.302653 / 1.732051 = 2.484138; sqrt(16 + 6.170942)
    mean, low, high = mean_interval([49.0, 50.0, 51.0], [45.0, 46.0, 47.0], [53.0, 54.0, 55.0])
    assert mean == 50.0
    assert 50.0 - low == pytest.approx(4.708603, abs=1e-5)
    assert high - 50.0 == pytest.approx(4.708603, abs=1e-5)


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 20), st.floats(0, 20)), min_size=1, max_size=8
    ),
    st.randoms(use_true_random=False),
)
def test_the_interval_ignores_the_order_of_seeds_and_stays_in_range(seeds, random):
    def interval(parts):
        return mean_interval(
            [v for v, _, _ in parts],
            [max(0, v - a) for v, a, _ in parts],
            [min(100, v + b) for v, _, b in parts],
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
    with pytest.raises(BadValue, match="a score over 5 problems, but the set has 7"):
        mean_cell([part])
