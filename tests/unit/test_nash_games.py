"""Nash-MD's game: numbers of the card, and laws that could come out otherwise."""

import pytest

from core.equations.online_equations import mixture_errors, nash_errors, online_errors
from core.laws.nash_games import (
    bonus_of_no_weight,
    divergences,
    nash_policy,
    of_nash,
    of_nash_md,
    of_reward_maximiser,
    of_self_play,
    rate_of_convergence,
)


def test_the_policy_and_the_divergences_are_those_of_the_card():
    assert nash_policy() == pytest.approx([0.387969, 0.208438, 0.403593], abs=1e-6)
    assert divergences() == pytest.approx([0.273, 1.91e-3, 1.26e-6], rel=0.01)
    assert rate_of_convergence() < -1


def test_the_last_policy_of_nash_md_is_that_of_the_game_and_self_play_cycles():
    last, cycling = of_nash_md(3000, 1.0), of_self_play(3000, 1.0)
    assert last == pytest.approx(of_nash(), abs=0.005)
    assert cycling > 0.2


def test_a_maximiser_of_rewards_is_exploitable():
    assert of_reward_maximiser() == pytest.approx(0.30)
    assert of_nash() == pytest.approx(0.054, abs=5e-4)


def test_a_bonus_of_no_weight_changes_nothing():
    assert bonus_of_no_weight() == [0.0, 0.0]


@pytest.mark.parametrize("errors", [online_errors, nash_errors, mixture_errors])
def test_losses_are_those_of_their_equations(errors):
    assert len(errors()) > 1
    assert max(errors()) < 1e-12
