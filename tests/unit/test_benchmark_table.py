from dataclasses import replace

import pytest
from table_records import PRINTED, SUITES, benchmark_table, pocket_table, printed, run

from eval.errors import BadValue
from eval.tables import render


def test_equal_best_cells_are_all_bold():
    cells = [printed("a", "math", 50.0), printed("b", "math", 50.0), printed("c", "math", 49.9)]
    rows = benchmark_table(cells).blocks[0].sections[0].rows
    assert [row.cells[0].bold for row in rows] == [True, True, False]


@pytest.mark.parametrize("change", [{"block": "cott"}, {"source": "free"}])
def test_a_reported_cell_that_fits_nowhere_is_refused(change):
    with pytest.raises(BadValue, match=next(iter(change.values()))):
        benchmark_table([replace(printed("a", "math", 50.0), **change)])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True])
def test_a_value_that_is_no_number_is_refused(value):
    with pytest.raises(BadValue, match="expected a finite number"):
        benchmark_table([printed("a", "math", value)])


def test_two_numbers_for_one_place_are_refused():
    cells = [printed("a", "math", 50.0), printed("a", "math", 51.0)]
    with pytest.raises(BadValue, match="two numbers for math"):
        benchmark_table(cells)


def test_small_runs_never_join_the_paper_table_and_paper_runs_do_with_interval():
    cells = [printed("a", "gsm8k", 50.0)]
    small = benchmark_table(cells, run("grpo", 0, 99.1, names=PRINTED))
    assert small == benchmark_table(cells)
    ours = [run("grpo", seed, 90.0 + seed, "paper", PRINTED) for seed in range(3)]
    table = benchmark_table(cells, *ours)
    cells = [row.cells[0] for _, section, row in table.rows() if section.title == "Ours: after RL"]
    assert [(c.value, c.n, c.seeds, c.bold, c.reported) for c in cells] == [
        (91.0, 1319, 3, False, False)
    ]
    assert "reported and ours" in table.caption
    with pytest.raises(BadValue, match="no run"):
        pocket_table(ours)


def test_pocket_table_compares_the_start_with_every_arm():
    runs = [
        run(arm, seed, value + seed)
        for arm, value in (("grpo", 60.0), ("rft", 50.0))
        for seed in range(3)
    ]
    table = pocket_table(runs)
    rows = {row.labels[0]: row.cells for _, _, row in table.rows()}
    assert list(rows) == ["pocket-instruct", "+ grpo", "+ rft"]
    assert [c.value for c in rows["+ grpo"]] == [61.0] * 4
    assert {(c.value, c.low, c.high, c.seeds) for c in rows["pocket-instruct"]} == {
        (40.0, 36.0, 44.0, 1)
    }
    assert not any(c.bold for cells in rows.values() for c in cells)
    assert "n=1000×3" in render(table, "md")


def test_the_score_of_a_start_is_shown_beside_arms_that_are_not_scored():
    """A reward model begins with the policy that other arms train, and answers nothing."""
    unscored = [{**run("rft", seed, 0.0), "start_scores": [], "scores": []} for seed in range(3)]
    scored = [run("grpo", seed, 60.0, start=40.0 + seed) for seed in range(2)]
    for runs in ([*unscored, *scored], [*scored, *unscored]):
        rows = {row.labels[0]: row.cells for _, _, row in pocket_table(runs).rows()}
        assert {(c.value, c.seeds) for c in rows["pocket-instruct"]} == {(40.5, 2)}
        assert rows["+ rft"] == (None,) * 4


def test_the_newest_run_of_an_arm_and_seed_counts():
    runs = [run("grpo", 0, 70.0, created="2026-02-01"), run("grpo", 0, 60.0, created="2026-01-01")]
    table = pocket_table(runs)
    assert [c.value for c in table.blocks[0].sections[1].rows[0].cells] == [70.0] * 4


def test_a_limited_score_is_marked():
    limited = run("grpo", 0, 70.0)
    limited["scores"][0] |= {"limited": True, "n": 200}
    table = pocket_table([limited])
    cells = [c for _, section, row in table.rows() if section.title == "Ours: after RL"
             for c in row.cells]  # fmt: skip
    assert [c.mark for c in cells] == ["limited", None, None, None]
    assert "70.0* [66.0, 74.0] n=200" in render(table, "md")
    assert "part of the test set" in table.marks["limited"]
    assert not pocket_table([run("grpo", 0, 70.0)]).marks


def test_a_score_of_another_n_enters_no_table_unmarked():
    short = run("grpo", 0, 70.0)
    short["scores"][0]["n"] = 999
    with pytest.raises(BadValue, match="covers 999 problems, but the set has 1000"):
        pocket_table([short])


def test_a_run_without_a_score_that_another_has_is_refused():
    runs = [run("grpo", 0, 70.0), run("grpo", 1, 70.0, names=SUITES[:3])]
    with pytest.raises(BadValue, match="pocket-cmath"):
        pocket_table(runs)
