"""Systems side by side: each against the first, paired, with Holm's p and marks that follow it."""

import random
from dataclasses import replace

import pytest
from scipy.stats import binomtest

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.stats.comparisons import holm
from eval.tables import render
from eval.tables.systems import systems_table

ONE = Sample(
    benchmark="pocket-math",
    id="",
    sample=0,
    output="",
    tokens=1,
    truncated=False,
    extracted="1",
    correct=True,
    rule="boxed",
    reason="same text",
)


def suite(right, benchmark="pocket-math", n=1000, samples=1):
    """Samples of which those of the problems in `right` are right."""
    return [
        replace(ONE, benchmark=benchmark, id=f"{benchmark}-{i}", sample=k, correct=i in right)
        for i in range(n)
        for k in range(samples)
    ]


def system(math, cmath=range(100)):
    return {"pocket-math": suite(math), "pocket-cmath": suite(cmath, "pocket-cmath")}


SYSTEMS = {
    "base": system(range(200)),
    "worse": system(range(30, 200), cmath=range(5, 103)),
    "better": system(range(10, 260)),
    "alike": system(range(195)),
}


def cells(table):
    return {(row.labels[0], c): cell for _, _, row in table.rows() for c, cell in pair(table, row)}


def pair(table, row):
    return zip((column.title for column in table.columns), row.cells, strict=True)


def test_every_system_is_compared_with_the_first_problem_by_problem():
    """Against McNemar's exact test as scipy's binomial gives it, adjusted for all six."""
    lost_won = {
        ("worse", "pocket MATH"): (30, 0),
        ("worse", "pocket CMATH"): (5, 3),
        ("better", "pocket MATH"): (10, 60),
        ("better", "pocket CMATH"): (0, 0),
        ("alike", "pocket MATH"): (5, 0),
        ("alike", "pocket CMATH"): (0, 0),
    }
    ps = [binomtest(w, w + x).pvalue if w + x else 1.0 for x, w in lost_won.values()]
    adjusted = dict(zip(lost_won, holm(ps), strict=True))
    found = {(s, c): v for s, c, v in systems_table(SYSTEMS).comparisons()}
    assert found.keys() == lost_won.keys()
    for key, versus in found.items():
        lost, won = lost_won[key]
        assert versus.p == pytest.approx(adjusted[key])
        assert versus.delta == pytest.approx((won - lost) / 10)
        assert (versus.n, versus.method) == (1000, "mcnemar")
        assert versus.sign == ("" if adjusted[key] >= 0.05 else "+" if won > lost else "-")
    assert [key for key, v in found.items() if v.sign] == [
        ("worse", "pocket MATH"),
        ("better", "pocket MATH"),
    ]


def test_the_order_of_samples_changes_nothing():
    shuffled = {
        name: {b: random.Random(1).sample(rows, len(rows)) for b, rows in suites.items()}
        for name, suites in SYSTEMS.items()
    }
    assert systems_table(shuffled) == systems_table(SYSTEMS)


def test_significance_needs_more_where_more_is_compared():
    """A p of 0.03 alone is a mark; among ten it is none."""
    pair = {"a": {"pocket-math": suite(range(20))}, "b": {"pocket-math": suite(range(14))}}
    (alone,) = [v for _, _, v in systems_table(pair).comparisons()]
    assert (round(alone.p, 3), alone.sign) == (0.031, "-")
    many = pair | {f"c{i}": pair["a"] for i in range(9)}
    assert {v.sign for _, _, v in systems_table(many).comparisons()} == {""}


def test_samples_of_k_are_compared_by_their_means():
    both = {
        "a": {"pocket-math": suite(range(100), samples=4)},
        "b": {"pocket-math": suite(range(120), samples=4)},
        "one": {"pocket-math": suite(range(100))},
    }
    table = systems_table(both)
    assert (table.columns[0].metric, table.marks) == ("avg@4", {"top1": "the metric is top1"})
    found = cells(table)
    assert found["b", "pocket MATH"].value == pytest.approx(12)
    assert found["b", "pocket MATH"].versus.method == "sign-flip"
    assert found["one", "pocket MATH"].mark == "top1"


def test_a_part_of_the_set_is_marked_and_what_is_not_there_stays_empty():
    some = {
        "a": {"pocket-math": suite(range(9), n=50)},
        "b": system(range(9)),
    }
    table = systems_table(some)
    found = cells(table)
    assert found["a", "pocket MATH"].mark == "a part"
    assert found["a", "pocket CMATH"] is None
    assert found["b", "pocket CMATH"].versus is None
    assert found["b", "pocket MATH"].versus.method == "mcnemar"  # over the 50 that both answered


def test_all_formats_show_the_marks_and_the_comparisons():
    table = systems_table(SYSTEMS)
    assert "17.0↓" in render(table, "md")
    assert "25.0↑" in render(table, "md")
    assert "worse against base, pocket MATH: -3.0" in render(table, "md")
    assert "17.0<sup>↓</sup>" in render(table, "html")
    latex = render(table, "latex")
    assert r"17.0\rlap{$\downarrow$}" in latex
    assert "↓" not in latex
    lines = render(table, "csv").splitlines()
    assert lines[0].endswith(",scale,baseline,delta,delta_low,delta_high,p,test")
    assert {line.count(",") for line in lines} == {lines[0].count(",")}


def test_one_system_is_no_comparison():
    with pytest.raises(BadValue, match="expected at least two"):
        systems_table({"a": system(range(9))})
