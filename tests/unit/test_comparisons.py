"""Comparisons between two runs and with a printed number: error rates and symmetry."""

from itertools import product
from random import Random

import numpy as np
import pytest
from statsmodels.stats import contingency_tables
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.stats.comparisons import (
    compare_reported,
    compare_scores,
    holm,
    mcnemar,
    sign_flip,
)


def samples(right: list[list[bool]], name: str = "p") -> list[Sample]:
    return [
        Sample(
            benchmark="gsm8k",
            id=f"{name}{i}",
            sample=k,
            output="",
            tokens=1,
            truncated=False,
            extracted="1",
            correct=value,
            rule="boxed",
            reason="",
        )
        for i, row in enumerate(right)
        for k, value in enumerate(row)
    ]


def test_mcnemar_is_the_sign_test():
    assert mcnemar(0, 0) == 1
    assert mcnemar(0, 5) == pytest.approx(2 / 2**5)
    assert mcnemar(3, 8) == mcnemar(8, 3)


@pytest.mark.parametrize(("lost", "won"), [(0, 1), (3, 3), (5, 17), (60, 41), (0, 30)])
def test_mcnemar_is_that_of_statsmodels(lost: int, won: int):
    other = contingency_tables.mcnemar([[7, lost], [won, 9]], exact=True).pvalue
    assert mcnemar(lost, won) == pytest.approx(other)


def test_sign_flip_enumerates_few_differences():
    found = [0.5, 0.25, -0.25, 1.0, 0.0]
    kept = [d for d in found if d]
    sums = [
        abs(sum(s * d for s, d in zip(f, kept, strict=True))) for f in product((-1, 1), repeat=4)
    ]
    assert sign_flip(found) == np.mean([s >= 1.5 for s in sums])
    assert sign_flip([0.0, 0.0]) == 1


def test_sign_flip_draws_when_there_are_many():
    differences = [1.0] * 14 + [-1.0] * 6
    assert sign_flip(differences) == pytest.approx(mcnemar(6, 14), abs=0.02)
    assert sign_flip(differences) == sign_flip(differences)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@pytest.mark.parametrize("n", range(1, 9))
def test_holm_is_that_of_statsmodels(n: int):
    ps = np.random.default_rng(n).beta(0.3, 1, size=n).round(2).tolist()
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


PAIRED = [
    ([[True], [False]] * 50, [[True], [False]] * 50, True, "mcnemar"),
    ([[True, False]] * 60, [[True, True]] * 60, True, "sign-flip"),
]


@pytest.mark.parametrize(("old", "new", "paired", "method"), PAIRED)
def test_the_same_problems_are_paired(old, new, paired: bool, method: str):
    found = compare_scores(samples(old), samples(new))
    assert (found.paired, found.method) == (paired, method)
    unpaired = compare_scores(samples(old), samples(new, "q"))
    assert not unpaired.paired
    assert unpaired.delta == pytest.approx(found.delta)


def test_a_drop_is_seen_and_equal_runs_are_not_a_drop():
    random = Random(0)
    before = [[random.random() < 0.6] for _ in range(500)]
    worse = [[row[0] and random.random() < 0.85] for row in before]
    drop = compare_scores(samples(before), samples(worse))
    assert drop.high < 0
    assert drop.p < 1e-6
    same = compare_scores(samples(before), samples(before))
    assert (same.delta, same.p) == (0, 1)
    assert same.low < 0 < same.high


@pytest.mark.parametrize("k", [1, 4])
def test_swapping_the_sides_changes_only_the_sign(k: int):
    random = Random(k)
    a = [[random.random() < 0.5 for _ in range(k)] for _ in range(80)]
    b = [[random.random() < 0.6 for _ in range(k)] for _ in range(80)]
    for name in ("p", "q"):
        one = compare_scores(samples(a), samples(b, name))
        other = compare_scores(samples(b, name), samples(a))
        assert (one.delta, one.low, one.high) == pytest.approx(
            (-other.delta, -other.high, -other.low)
        )
        assert one.p == pytest.approx(other.p, abs=0.02)


@pytest.mark.parametrize("name", ["p", "q"])
def test_a_false_alarm_is_as_rare_as_promised(name: str):
    """400 simulated pairs of equal runs: at most 5 % plus four standard errors are significant."""
    random = np.random.default_rng(1)
    alarms = outside = 0
    for _ in range(400):
        rates = random.beta(2, 2, size=150)
        a, b = random.random(150) < rates, random.random(150) < rates
        found = compare_scores(samples(a[:, None].tolist()), samples(b[:, None].tolist(), name))
        alarms += found.p < 0.05
        outside += not found.low <= 0 <= found.high
    assert alarms / 400 < 0.05 + 4 * 0.011
    assert outside / 400 < 0.05 + 4 * 0.011


def test_different_benchmarks_are_not_compared():
    with pytest.raises(BadValue, match="0 samples before"):
        compare_scores([], samples([[True]]))


@pytest.mark.parametrize(
    ("right", "verdict"),
    [(2585, "reproduced"), (2400, "below"), (2800, "above"), (2520, "undecided")],
)
def test_a_printed_number_has_four_outcomes(right: int, verdict: str):
    assert compare_reported(right, 5000, 51.7, margin=1.5).verdict == verdict


@pytest.mark.parametrize("reported", [46.8, 88.2])
def test_the_gate_is_two_one_sided_score_tests(reported: float):
    """`reproduced` when both tests of statsmodels reject at 5 %, `below` when its opposite does."""
    low, high = (reported - 2.05) / 100, (reported + 2.05) / 100

    def p(right: int, value: float, side: str) -> float:
        return proportions_ztest(right, 1319, value, side, prop_var=value)[1]

    said = set()
    for right in range(round(13.19 * (reported - 8)), round(13.19 * min(reported + 8, 99.5))):
        verdict = compare_reported(right, 1319, reported, 2.0).verdict
        inside = p(right, low, "larger") <= 0.05 and p(right, high, "smaller") <= 0.05
        assert (verdict == "reproduced") == inside
        assert (verdict == "below") == (p(right, low, "smaller") < 0.05)
        assert (verdict == "above") == (p(right, high, "larger") < 0.05)
        said.add(verdict)
    assert said >= {"below", "undecided", "above"}


def test_a_margin_below_the_noise_can_never_say_reproduced():
    found = {compare_reported(x, 250, 79.6, margin=2.0).verdict for x in range(251)}
    assert found == {"below", "undecided", "above"}


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("n", [2, 10, 20, 300])
def test_no_interval_of_a_difference_leaves_what_is_possible(n, k):
    all_right, all_wrong = [[True] * k] * n, [[False]] * n
    found = compare_scores(samples(all_right), samples(all_wrong))
    assert found.delta == -100
    assert -100 <= found.low <= found.delta <= found.high <= 100


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["p", "q"])
def test_files_of_several_samples_and_of_one_are_paired_over_the_problems_they_share(name):
    several, single = [[True, True, False, False]] * 12, [[i % 2 == 0] for i in range(10)]
    found = compare_scores(samples(several), samples(single, name))
    shares_problems = {s.id for s in samples(several)} & {s.id for s in samples(single, name)}
    assert (found.paired, found.n) == (bool(shares_problems), 10)
    assert found.delta == 0
