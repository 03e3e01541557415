"""Losses of rewards of pairs and of labels of steps: worked examples, and laws at any rewards."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mutations import applied, mutants
from test_mutated_losses import holds

from core.laws.house import LAWS
from core.laws.reward_models import (
    centred_gaps,
    centring_costs,
    margin_changes,
    shift_changes,
)
from core.losses.scoring import PairRewards, pair_losses, step_labels

PLAIN = {"bradley_terry": 1.0}
CENTRED = {"bradley_terry": 1.0, "centred": 0.01}
CHOSEN, REJECTED = (1.2, -0.3), (0.4, 0.1)
NUMBERS = st.floats(-20, 20)


def rewards(chosen, rejected, margin=None):
    columns = [torch.tensor(x, dtype=torch.float64) for x in (chosen, rejected)]
    margins = None if margin is None else torch.tensor(margin, dtype=torch.float64)
    return PairRewards(chosen=columns[0], rejected=columns[1], margin=margins)


@pytest.mark.parametrize(
    ("margin", "losses"),
    [
        (None, None),
        ((1.0, 1 / 3), (0.798139, 1.125582)),
        ((3.0, 1.0), None),
    ],
)
def test_the_worked_example_of_margins(margin, losses):
    """Of arXiv 2307.09288: significantly and slightly better, by small and by large margins."""
    mean = {None: 0.642058, (1.0, 1 / 3): 0.961860, (3.0, 1.0): 1.962750}[margin]
    found = pair_losses(rewards(CHOSEN, REJECTED, margin), PLAIN)
    assert found.mean().item() == pytest.approx(mean, abs=1e-6)
    assert losses is None or found.tolist() == pytest.approx(losses, abs=1e-6)


def test_the_worked_example_of_centred_rewards():
    """Of arXiv 2312.09244: the loss, and its gradient by the rewards of both texts."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (CHOSEN, REJECTED)]
    pair = PairRewards(chosen=leaves[0], rejected=leaves[1])
    assert pair_losses(pair, {"centred": 1.0}).mean().item() == pytest.approx(1.3, abs=1e-9)
    loss = pair_losses(pair, CENTRED)
    assert loss.mean().item() == pytest.approx(0.655058, abs=1e-6)
    chosen, rejected = torch.autograd.grad(loss.mean(), leaves)
    assert chosen.tolist() == pytest.approx([-0.139013, -0.301344], abs=1e-6)
    assert rejected.tolist() == pytest.approx([0.171013, 0.297344], abs=1e-6)


@given(NUMBERS, NUMBERS, st.floats(0, 3), NUMBERS)
def test_a_shift_of_both_rewards_changes_no_loss_of_a_pair(chosen, rejected, margin, shift):
    moved = rewards([chosen + shift], [rejected + shift], [margin])
    still = rewards([chosen], [rejected], [margin])
    one, other = (pair_losses(pair, PLAIN).item() for pair in (moved, still))
    assert one == pytest.approx(other, abs=1e-9)


@given(NUMBERS, NUMBERS, st.floats(0, 3))
def test_a_margin_is_a_higher_reward_of_the_rejected_text(chosen, rejected, margin):
    one = pair_losses(rewards([chosen], [rejected], [margin]), PLAIN)
    other = pair_losses(rewards([chosen], [rejected + margin]), PLAIN)
    assert one.item() == pytest.approx(other.item(), abs=1e-9)


@given(NUMBERS, st.floats(0.01, 20))
def test_the_penalty_is_least_where_rewards_sum_to_zero(gap, middle):
    for sign in (-1, 1):
        centre = sign * middle
        moved = rewards([centre + gap / 2], [centre - gap / 2])
        still = rewards([gap / 2], [-gap / 2])
        cost = pair_losses(moved, CENTRED) - pair_losses(still, CENTRED)
        assert cost.item() == pytest.approx(0.01 * 4 * middle**2, rel=1e-6)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 1)), min_size=1, max_size=5))
def test_a_label_costs_its_logistic_loss(steps):
    """Two labels are one logit: the difference of both."""
    logits = torch.tensor([step[:2] for step in steps], dtype=torch.float64)
    labels = torch.tensor([step[2] for step in steps])
    gaps = (logits[:, 1] - logits[:, 0]) * (2 * labels - 1)
    expected = torch.log1p((-gaps.abs()).exp()) + (-gaps).clamp(min=0)
    torch.testing.assert_close(step_labels(logits, labels), expected)


def test_laws_of_reward_models():
    assert max(shift_changes()) < 1e-12
    assert min(centring_costs(coefficient=0.01)) > 0
    assert centring_costs(coefficient=0.0) == pytest.approx([0.0] * 30, abs=1e-12)
    assert centred_gaps(coefficient=0.01) == pytest.approx([0.0] * 5, abs=1e-12)
    assert margin_changes(margin=0.0) == 0.0
    assert margin_changes(margin=1.0) > 1e-3


def test_laws_notice_every_change_of_these_losses():
    laws = [law for law in LAWS if law.slug in ("pair-rewards", "step-labels", "token-values")]
    changes = [mutant for mutant in mutants() if mutant.module == "scoring"]
    assert len(changes) >= 3
    for mutant in changes:
        with applied(mutant):
            assert not all(map(holds, laws)), str(mutant)
    assert all(map(holds, laws))
