"""Laws of policies that losses of pairs train: optima, modes, games, and moved references."""

import pytest
import torch

from core.laws.preference_games import CYCLE, exploitability, self_play, stationary_ratios
from core.laws.preference_optima import from_dpo, loss_after_sync, slope
from core.laws.preference_policies import CASES, mass_on_better_mode, optimum
from core.losses.divergence_scores import DIVERGENCES


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("beta", [0.7, 2.0])
def test_scores_of_a_trained_policy_are_apart_by_rewards_over_beta(divergence, beta):
    """beta (f'(p_i) - f'(p_j)) = r_i - r_j, the condition of the optimum; arXiv 2309.16240."""
    for rewards in CASES:
        policy = optimum(rewards, divergence, 0.5, beta)
        ratios = policy.log() + torch.tensor(float(len(rewards)), dtype=torch.float64).log()
        scores = DIVERGENCES[divergence].derivative(ratios, 0.5)
        gaps = beta * (scores - scores[0])
        assert gaps.tolist() == pytest.approx([r - rewards[0] for r in rewards], abs=1e-3)


def test_the_reverse_kl_trains_the_tilted_reference():
    policy = optimum(CASES[0], "reverse_kl", 0.5, 2.0)
    tilted = (torch.tensor(CASES[0], dtype=torch.float64) / 2.0).softmax(0)
    assert policy.tolist() == pytest.approx(tilted.tolist(), abs=1e-5)


def test_the_reverse_kl_seeks_one_mode_of_two():
    assert mass_on_better_mode("exo") > 0.9
    assert mass_on_better_mode("sigmoid") < 0.5


def test_sorted_losses_of_one_pair_are_dpo_and_others_are_not():
    for name in ("aot", "aot_unpaired"):
        assert from_dpo(name) == pytest.approx([0.0] * 15, abs=1e-12)
    assert max(map(abs, from_dpo("hinge"))) > 0.1


def test_a_reference_that_is_set_to_the_policy_has_the_loss_of_a_coin():
    coin = torch.tensor(2.0).log().item()
    assert loss_after_sync(1.0) == pytest.approx([coin] * 8, abs=1e-6)
    assert max(abs(loss - coin) for loss in loss_after_sync(0.5)) > 0.01


def test_discopop_has_a_minimum_below_0_and_a_maximum_above():
    signs = [slope("discopop", at=at) > 0 for at in (-0.5, -0.13, -0.11, 0.0, 0.06, 0.08, 0.5)]
    assert signs == [False, False, True, True, True, False, False]


def test_self_play_moves_by_what_is_won_and_is_near_the_equilibrium_on_average():
    wins = torch.tensor([0.9, 0.5, 0.2], dtype=torch.float64)
    assert stationary_ratios(wins).tolist() == pytest.approx([0.02, 0.0, -0.015])
    assert (CYCLE + CYCLE.T).flatten().tolist() == pytest.approx([1.0] * 9)
    policies = self_play(2000)
    assert exploitability(policies[0]) == pytest.approx(0.1)
    assert exploitability(torch.stack(policies).mean(0)) < 0.01
