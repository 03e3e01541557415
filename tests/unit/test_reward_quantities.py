"""Quantities of rewards of pairs: what a shift, a scale and grades change, and what is stored."""

from dataclasses import asdict
from math import sqrt

import pytest
import torch
from run_records import run_record, written_again

from core.data.pair_columns import GRADE
from core.errors import NotMeasured
from core.families.reward import RewardModels
from core.records.pair_files import pairs_digest, read_pairs, write_pairs
from core.records.places import own_results
from core.scoring.reward_quantities import (
    REWARD_QUANTITIES,
    RewardedPairs,
    reward_columns,
    reward_quantity,
    rewarded_pairs,
)
from core.stages.pair_quantities import derive
from core.stages.probabilities import compare_quantities
from core.verdicts.derived_pairs import pair_problems

COUNT = 60
SHIFTED = {"rewards/mean", "rewards/one_completion"}  # by a constant that is added to all rewards
SCALED = {*SHIFTED, "pairs/margin", "pairs_clear/margin"}  # by a factor of all rewards


def some_pairs(seed=0):
    """Random rewards of pairs, of which the chosen text is better on average."""
    draw = torch.Generator().manual_seed(seed)
    chosen, rejected = torch.randn(2, COUNT, generator=draw).double()
    return RewardedPairs(chosen + 1, rejected, 1.0 + torch.arange(COUNT) % 3)


def values(pairs):
    return {name: reward_quantity(name, pairs).value for name in REWARD_QUANTITIES}


def changed_by(pairs, other):
    one, two = values(pairs), values(other)
    return {name for name in one if abs(one[name] - two[name]) > 1e-9}


def test_a_shift_moves_means_alone_and_a_scale_moves_what_has_the_unit_of_rewards():
    pairs = some_pairs()
    shifted = RewardedPairs(pairs.chosen + 3, pairs.rejected + 3, pairs.grade)
    scaled = RewardedPairs(pairs.chosen * 3, pairs.rejected * 3, pairs.grade)
    assert changed_by(pairs, shifted) == SHIFTED
    assert changed_by(pairs, scaled) == SCALED
    for name in SHIFTED:
        assert values(shifted)[name] == pytest.approx(values(pairs)[name] + 3)


def test_clear_and_close_pairs_are_those_of_the_highest_and_the_lowest_grade():
    gaps = torch.tensor([1.0, -1.0, 2.0, 0.0, 3.0, -2.0], dtype=torch.float64)
    grades = torch.tensor([3.0, 3.0, 2.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    found = values(RewardedPairs(gaps, torch.zeros_like(gaps), grades))
    assert found["pairs_clear/accuracy"] == 1 / 2
    assert found["pairs_close/accuracy"] == pytest.approx((1 / 2 + 1) / 3)
    assert found["pairs/accuracy"] == pytest.approx(3.5 / 6)
    assert (found["pairs/margin"], found["pairs_clear/margin"]) == (1 / 2, 0)
    assert found["rewards/mean"] == pytest.approx(1 / 4)
    assert found["rewards/one_completion"] == 1


def test_the_family_offers_every_quantity():
    assert sorted(RewardModels.pair_quantities) == sorted(REWARD_QUANTITIES)


def test_ashmans_distance_is_that_of_two_clusters_by_hand():
    chosen = torch.tensor([3.0, 5.0], dtype=torch.float64)  # variance 2
    rejected = torch.tensor([-2.0, 2.0], dtype=torch.float64)  # variance 8
    pairs = RewardedPairs(chosen, rejected, None)
    assert reward_quantity("rewards/bimodality", pairs).value == pytest.approx(4 / sqrt(5))


def test_intervals_hold_their_values():
    pairs = some_pairs()
    for name in {*REWARD_QUANTITIES} - {"rewards/one_completion"}:
        quantity = reward_quantity(name, pairs)
        assert quantity.low < quantity.value < quantity.high, name


def test_a_quantity_of_a_grade_needs_grades_and_others_do_not():
    pairs = some_pairs()._replace(grade=None)
    with pytest.raises(NotMeasured, match="no grades; add the column grade of whole numbers"):
        reward_quantity("pairs_clear/accuracy", pairs)
    assert reward_quantity("pairs/accuracy", pairs).value > 0.5


@pytest.mark.parametrize("grade", ["clear", None, 1.5, True, 2**31])
def test_grades_that_are_no_whole_numbers_are_none(grade):
    rewards = torch.zeros(2, 2)
    for rows, has_grades in (([{GRADE: 1}] * 2, True), ([{GRADE: 1}, {GRADE: grade}], False)):
        assert (GRADE in reward_columns(rewards, rewards, rows)) == has_grades


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A stored run of a reward model, with the quantities of its pairs."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    start, trained = (torch.stack(some_pairs(seed)[:2]) for seed in (1, 2))
    columns = reward_columns(start, trained, [{GRADE: 1 + place % 3} for place in range(COUNT)])
    path = tmp_path / "pairs.parquet"
    write_pairs(path, {"held_out": columns})
    sets = read_pairs(path)
    assert sets == {"held_out": columns}
    digest = pairs_digest(sets)
    write_pairs(own_results() / "samples" / f"{digest}.parquet", sets)
    changes = compare_quantities(
        *(derive(sets, REWARD_QUANTITIES, at_start=at_start) for at_start in (True, False))
    )
    run = run_record(40, slug="reward-centering", arm="plain")
    return written_again(run, pairs=digest, probabilities=changes)


@pytest.mark.parametrize("name", REWARD_QUANTITIES)
@pytest.mark.parametrize("field", ["before", "after", "after_interval"])
def test_a_quantity_follows_from_the_stored_rewards_and_a_forged_one_is_seen(record, name, field):
    assert list(pair_problems(record)) == []
    quantity = record["probabilities"][name]
    value = quantity[field]
    forged = [value[0] - 0.01, value[1]] if isinstance(value, list) else value + 0.01
    changes = {**record["probabilities"], name: {**quantity, field: forged}}
    (line,) = pair_problems({**record, "probabilities": changes})
    assert f"{name}: is" in line


def test_rewards_without_grades_are_stored_without_them(tmp_path):
    start, trained = (torch.stack(some_pairs(seed)[:2]) for seed in (1, 2))
    columns = reward_columns(start, trained, [{} for _ in range(COUNT)])
    write_pairs(tmp_path / "pairs.parquet", {"held_out": columns})
    stored = read_pairs(tmp_path / "pairs.parquet")["held_out"]
    assert stored == columns
    assert rewarded_pairs(stored).grade is None
    kept = rewarded_pairs(stored, at_start=True).chosen
    assert torch.equal(kept, start[0].float().double())
    assert asdict(reward_quantity("pairs/margin", rewarded_pairs(stored)))["n"] == COUNT
