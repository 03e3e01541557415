"""The bandit of XPO's claim: what its rounds count, and that they are those of its seeds."""

import pytest
import torch

from core.laws import bandit


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    monkeypatch.setattr(bandit, "ROUNDS", 40)
    bandit.rounds.cache_clear()
    yield
    bandit.rounds.cache_clear()


def test_half_of_the_answers_are_rare_in_the_reference():
    chances = bandit.reference()
    assert chances.sum().item() == pytest.approx(1.0)
    assert chances[bandit.BEST] == chances.min() == bandit.CHANCE
    assert (chances == bandit.CHANCE).sum() == bandit.RARE == bandit.ANSWERS / 2


def test_a_seed_gives_one_number_whatever_is_asked_before():
    first = [bandit.rounds_to_find(0.01, seed=seed) for seed in range(3)]
    bandit.rounds.cache_clear()
    bandit.rounds_to_find(0.0, seed=25)
    assert [bandit.rounds_to_find(0.01, seed=seed) for seed in range(3)] == first
    assert all(1 <= number <= 40 for number in first)


def test_an_answer_that_is_likely_from_the_start_is_found_in_the_first_round(monkeypatch):
    chances = torch.full((bandit.ANSWERS,), 0.2 / (bandit.ANSWERS - 1), dtype=torch.float64)
    chances[bandit.BEST] = 0.8
    monkeypatch.setattr(bandit, "reference", lambda: chances)
    assert bandit.rounds(0.0, 0).eq(1).all()


def test_a_common_answer_is_found_with_rewards_and_not_by_lots(monkeypatch):
    """Of 20 seeds each; by lots each answer of the reference is as likely to win as another."""
    monkeypatch.setattr(bandit, "CHANCE", 0.05)
    with_rewards, by_lots = (bandit.rounds(0.0, 0, judged=judged) for judged in (True, False))
    assert (with_rewards < 40).sum() - (by_lots < 40).sum() >= 5
