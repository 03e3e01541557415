"""Intervals cover as promised, Pass@K and Maj@K are what enumeration gives."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom, binomtest
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from eval.errors import BadValue
from eval.stats.estimates import (
    ENUMERATED,
    LEVEL,
    Votes,
    bootstrap,
    clopper_pearson,
    maj_at_k,
    mean_interval,
    pass_at_k,
    proportion,
    variance_parts,
    wilson,
)


@cache
def intervals(interval, n: int) -> np.ndarray:
    return np.array([interval(x, n) for x in range(n + 1)])


def coverage(interval, n: int, p: float) -> float:
    """Exact chance that the interval holds p."""
    low, high = intervals(interval, n).T
    held = (low <= p) & (p <= high)
    return float(binom.pmf(np.arange(n + 1), n, p)[held].sum())


@pytest.mark.parametrize("n", [10, 50, 250])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.88])
def test_the_exact_interval_never_covers_less_than_promised(n: int, p: float):
    assert coverage(clopper_pearson, n, p) >= 0.95


@pytest.mark.parametrize("n", [100, 250, 1319])
def test_wilson_covers_as_promised_on_average(n: int):
    covers = [coverage(wilson, n, p) for p in np.linspace(0.05, 0.95, 31)]
    assert 0.945 < np.mean(covers) < 0.957
    assert min(covers) > 0.92


@pytest.mark.parametrize(("right", "n"), [(0, 7), (3, 7), (7, 7), (40, 100), (1164, 1319)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_are_those_of_scipy_and_statsmodels(right: int, n: int, level: float):
    for interval, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        other = binomtest(right, n).proportion_ci(level, method)
        assert interval(right, n, level) == pytest.approx((other.low, other.high), abs=1e-9)
    for interval, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        other = proportion_confint(right, n, 1 - level, method)
        assert interval(right, n, level) == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize(("right", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_refused(right: int, n: int):
    for interval in (wilson, clopper_pearson):
        with pytest.raises(BadValue, match=f"{right} right of {n}"):
            interval(right, n)


def test_wilson_gives_the_published_interval():
    low, high = wilson(2585, 5000)  # DeepSeekMath-RL on MATH
    assert (round(100 * low, 1), round(100 * high, 1)) == (50.3, 53.1)


def test_few_problems_get_the_exact_interval():
    assert proportion(50, 99).method == "clopper-pearson"
    assert proportion(50, 100).method == "wilson"
    assert proportion(0, 20).low == 0
    assert proportion(0, 20).high == pytest.approx(1 - 0.025 ** (1 / 20))


@given(st.integers(1, 10).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_is_the_mean_over_all_subsets(case: tuple[int, int]):
    n, right = case
    samples = [i < right for i in range(n)]
    for k in range(1, n + 1):
        subsets = [any(s) for s in combinations(samples, k)]
        assert pass_at_k(n, right, k) == float(Fraction(sum(subsets), comb(n, k)))


@pytest.mark.parametrize("k", [0, 9])
def test_more_samples_than_there_are_is_refused(k: int):
    with pytest.raises(BadValue, match=f"K={k} with 8 samples"):
        pass_at_k(8, 3, k)
    with pytest.raises(BadValue, match=f"K={k} with 8 samples"):
        maj_at_k(Votes((5, 3), (True, False)), k)


def enumerated(votes: Votes, k: int) -> float:
    """Maj@K by listing every subset of the samples."""
    labels = [i for i, c in enumerate(votes.counts) for _ in range(c)] + [-1] * votes.blank
    total = Fraction(0)
    for subset in combinations(labels, k):
        counts = {label: subset.count(label) for label in subset if label >= 0}
        top = [label for label in counts if counts[label] == max(counts.values())]
        total += Fraction(sum(votes.right[label] for label in top), len(top)) if top else 0
    return float(total / comb(len(labels), k))


@given(
    st.lists(st.integers(1, 4), max_size=3), st.integers(0, 2), st.integers(1, 10), st.booleans()
)
def test_maj_at_k_is_the_mean_over_all_subsets(counts, blank: int, k: int, first: bool):
    votes = Votes(tuple(counts), tuple(first and i == 0 for i in range(len(counts))), blank)
    if 1 <= k <= votes.n and comb(votes.n, k) <= ENUMERATED:
        assert maj_at_k(votes, k) == pytest.approx(enumerated(votes, k), abs=1e-12)


def test_drawn_subsets_agree_with_all_of_them():
    votes = Votes((6, 5, 4), (True, False, False), 1)
    assert comb(votes.n, 8) > 3000  # drawn, not enumerated
    error = 4 * 0.5 / 2000**0.5
    assert maj_at_k(votes, 8) == pytest.approx(enumerated(votes, 8), abs=error)
    assert maj_at_k(votes, 8, seed=3) == maj_at_k(votes, 8, seed=3)


def test_ties_share_and_blanks_do_not_vote():
    assert maj_at_k(Votes((2, 2), (True, False)), 4) == 0.5
    assert maj_at_k(Votes((1,), (True,), blank=7), 8) == 1.0
    assert maj_at_k(Votes((), (), blank=4), 4) == 0.0


def test_the_order_of_answers_does_not_matter():
    a, b = Votes((4, 2, 1), (False, True, False), 1), Votes((1, 2, 4), (False, True, False), 1)
    assert maj_at_k(a, 5) == pytest.approx(maj_at_k(b, 5))


def test_the_problem_is_the_unit():
    few = mean_interval([0.0, 1.0] * 50)
    many = mean_interval([0.0, 1.0] * 200)
    assert few.high - few.low == pytest.approx(2 * (many.high - many.low), rel=0.02)


@pytest.mark.parametrize("estimator", [mean_interval, bootstrap])
def test_intervals_of_means_cover_as_promised(estimator):
    """300 simulated runs: 95 % less four standard errors of the simulation (1.26 points each)."""
    random = np.random.default_rng(0)
    held = 0
    for seed in range(300):
        rows = random.binomial(4, random.beta(2, 2, size=120)) / 4
        arguments = {"seed": seed, "draws": 300} if estimator is bootstrap else {}
        found = estimator(rows.tolist(), **arguments)
        held += found.low <= 0.5 <= found.high
    assert 0.95 - 4 * 0.0126 < held / 300 < 0.995


def test_the_interval_of_a_mean_is_clustered_by_problem():
    """K samples a problem: as a regression on a constant with errors clustered by problem."""
    random = np.random.default_rng(1)
    rows = random.binomial(1, random.beta(1, 1, size=200)[:, None], size=(200, 8))
    clusters = {"groups": np.repeat(np.arange(200), 8), "use_correction": True}
    model = OLS(rows.ravel().astype(float), np.ones(1600))
    fit = model.fit(cov_type="cluster", cov_kwds=clusters, use_t=True)
    found = mean_interval(rows.mean(1).tolist())
    assert (found.low, found.high) == pytest.approx(fit.conf_int()[0], rel=1e-3)
    assert found.high - found.low > 1.5 * 2 * 1.96 * rows.std() / 1600**0.5


@pytest.mark.parametrize("n", [2, 9, 129, 1000])
def test_the_bootstrap_draws_all_problems_again_as_often_as_it_says(n):
    random = np.random.default_rng(n)
    values = random.random(n)
    again = np.random.default_rng(7)
    means = [values[again.integers(n, size=n)].mean() for _ in range(50)]
    found = bootstrap(values.tolist(), seed=7, draws=50)
    ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    assert [found.low, found.high] == ends.tolist()


def test_the_bootstrap_is_that_of_scipy():
    values = np.random.default_rng(2).beta(0.5, 0.5, size=150)
    other = stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    found = bootstrap(values.tolist(), draws=4000)
    width = other.high - other.low
    assert found.low == pytest.approx(other.low, abs=0.05 * width)
    assert found.high == pytest.approx(other.high, abs=0.05 * width)


def test_no_spread_still_has_an_interval():
    found = mean_interval([1.0] * 50)
    assert found.value == 1
    assert found.low == pytest.approx(0.025 ** (1 / 50))
    with pytest.raises(BadValue, match="1 problems"):
        mean_interval([1.0])


def test_variance_splits_into_problems_and_samples():
    random = np.random.default_rng(0)
    rates = random.choice([0.2, 0.8], size=4000)
    rows = random.binomial(1, rates[:, None], size=(4000, 8)).tolist()
    between, within = variance_parts(rows)
    assert between == pytest.approx(0.09, abs=0.005)
    assert within == pytest.approx(0.16, abs=0.005)
