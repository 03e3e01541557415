"""The table of quantities of pairs: means over seeds, and what its rows and columns are of."""

import pytest

from core.pages.probabilities import PAIRS_NOTE, REWARDS_NOTE, SCORES_NOTE, quantities_tables
from core.paper.registry import find_paper
from eval.tables.render import render

DPO, DFT = find_paper("dpo"), find_paper("dft")


def record(arm, seed, **values):
    """A record of what an arm measured: quantities that are 0 before the training."""
    changes = {
        name.replace("_of_training", "/training"): {
            "before": 0.0,
            "after": value,
            "before_interval": [-0.5, 0.5],
            "after_interval": [value - 0.5, value + 0.5],
            "n": 300,
        }
        for name, value in values.items()
    }
    return {
        "arm": arm,
        "seed": seed,
        "start_model": "a start",
        "start_scores": [seed],
        "size": "1M",
        "probabilities": changes,
    }


def test_quantities_of_pairs_are_means_over_seeds_and_say_of_which_rows():
    runs = [
        record("dpo", seed, pair_margin=1.0 + seed, pair_margin_of_training=3.0 + seed)
        for seed in (0, 1)
    ]
    (table,) = quantities_tables(DPO, runs, "cpu")
    before, after = (section.rows for section in table.blocks[0].sections)
    assert [row.labels[0] for row in (*before, *after)] == ["a start", "+ dpo"]
    assert [cell.value for cell in before[0].cells] == [0.0, 0.0]
    assert [cell.value for cell in after[0].cells] == [1.5, 3.5]
    assert [cell.seeds for cell in after[0].cells] == [2, 2]
    page = render(table, "md")
    assert "pairs of answers, by rows that are held out and (/training) trained on" in page
    assert PAIRS_NOTE in page


def test_quantities_of_solutions_are_not_said_to_be_of_pairs():
    (table,) = quantities_tables(DFT, [record("dft", 0, nll=1.0)], "cpu")
    page = render(table, "md")
    assert "of solutions, per token" in page
    assert PAIRS_NOTE not in page


def test_quantities_of_rewards_are_explained_and_have_no_unit_of_probabilities():
    runs = [record("plain", 0, **{"pairs/accuracy": 0.8, "rewards/mean": 1.0})]
    (table,) = quantities_tables(find_paper("reward-centering"), runs, "cpu")
    assert "of pairs of answers" in render(table, "md")
    assert REWARDS_NOTE in table.notes
    assert PAIRS_NOTE not in table.notes


def test_quantities_of_scored_solutions_are_explained():
    runs = [record("prm", 0, **{"solutions/ordered_pairs": 0.6, "steps/as_steps": 0.8})]
    (table,) = quantities_tables(find_paper("prm"), runs, "cpu")
    assert "of sampled solutions" in table.caption
    assert SCORES_NOTE in table.notes
    assert PAIRS_NOTE not in table.notes


@pytest.mark.parametrize("arms", [("dpo",), ("dpo", "dpo-long")])
def test_a_quantity_that_an_arm_lacks_has_no_cell(arms):
    runs = [record("dpo", 0, pair_margin=1.0, kl_to_start=2.0)]
    runs += [record("dpo-long", 0, pair_margin=1.0)] * (len(arms) - 1)
    (table,) = quantities_tables(DPO, runs, "cpu")
    rows = table.blocks[0].sections[1].rows
    assert [row.cells[1] is None for row in rows] == [False, True][: len(arms)]
