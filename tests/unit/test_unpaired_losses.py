"""Losses of labelled answers: the worked examples of papers, and laws of every loss."""

from math import exp, log, log1p

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_preference_losses import settings

from core.laws import labelled_answers
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import preference_losses
from core.losses.unpaired import UNPAIRED, baseline, unpaired_losses

BETA = 0.1
RATIOS = (1.2, -0.6)  # of the desirable and the undesirable answer of the examples
REWARD = st.floats(-20.0, 20.0)


def losses_of(loss_type, ratios, labels, shift=0.0, weights=None, beta=BETA):
    """The losses, and the gradients of their mean by the log-ratios."""
    leaf = torch.tensor(ratios, dtype=torch.float64, requires_grad=True)
    losses = unpaired_losses(
        loss_type,
        beta * leaf,
        torch.tensor(labels),
        shift=shift,
        weights=None if weights is None else torch.tensor(weights, dtype=torch.float64),
    )
    losses.mean().backward()
    return losses.tolist(), leaf.grad.tolist()


# loss type, shift, the printed mean loss of both answers, its gradients, the loss of each answer
EXAMPLES = [
    ("kto", BETA * 0.5, 0.477517, (-0.012485, 0.012462), (0.482507, 0.472528)),
    ("apo_zero_unpaired", 0.0, 0.47752, (-0.02491 / 2, 0.024978 / 2), None),
    ("bco", 0.05, 1.298418 / 2, (-0.048251 / 2, 0.047253 / 2), None),
    ("bco", 0.0, 1.298543 / 2, (-0.047004 / 2, 0.0485 / 2), None),
]


@pytest.mark.parametrize(("loss_type", "shift", "mean", "gradients", "of_each"), EXAMPLES)
def test_worked_examples(loss_type, shift, mean, gradients, of_each):
    found, by_ratio = losses_of(loss_type, RATIOS, (True, False), shift)
    assert sum(found) / 2 == pytest.approx(mean, abs=1e-6)
    assert by_ratio == pytest.approx(gradients, abs=1e-6)
    assert of_each is None or found == pytest.approx(of_each, abs=1e-6)


def test_worked_example_of_the_bound_of_dpo():
    """Whatever the shift, BCO of a pair is at least DPO, and least at its mean reward."""
    dpo = -log(1 / (1 + exp(-BETA * (RATIOS[0] - RATIOS[1]))))
    assert dpo == pytest.approx(0.607192, abs=1e-6)
    middle = BETA * sum(RATIOS) / 2
    assert middle == pytest.approx(0.03)
    at_middle = sum(losses_of("bco", RATIOS, (True, False), middle)[0])
    assert at_middle == pytest.approx(1.298319, abs=1e-6)
    for shift in (-1.0, 0.0, 0.02, 0.04, 0.05, 1.0):
        loss = sum(losses_of("bco", RATIOS, (True, False), shift)[0])
        assert loss > at_middle > dpo


@pytest.mark.parametrize("loss_type", UNPAIRED)
@given(ratio=REWARD, shift=st.floats(-3.0, 3.0))
def test_the_other_label_turns_rewards_and_shift_round(loss_type, ratio, shift):
    (one,), (by_one,) = losses_of(loss_type, (ratio,), (True,), shift)
    (other,), (by_other,) = losses_of(loss_type, (-ratio,), (False,), -shift)
    assert one == pytest.approx(other, abs=1e-12)
    assert by_one == pytest.approx(-by_other, abs=1e-12)
    assert by_one <= 0 <= by_other


@pytest.mark.parametrize("loss_type", UNPAIRED)
@given(ratios=st.lists(REWARD, min_size=1, max_size=5), draw=st.data())
def test_weights_are_factors_and_the_order_of_answers_is_theirs(loss_type, ratios, draw):
    n = len(ratios)
    labels = draw.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    weights = draw.draw(st.lists(st.floats(0.0, 9.0), min_size=n, max_size=n))
    plain, _ = losses_of(loss_type, ratios, labels, 0.3)
    weighed, _ = losses_of(loss_type, ratios[::-1], labels[::-1], 0.3, weights[::-1])
    expected = [w * loss for w, loss in zip(weights, plain, strict=True)]
    assert weighed[::-1] == pytest.approx(expected, abs=1e-12)


@given(reward=REWARD, shift=st.floats(-3.0, 3.0))
def test_kto_is_one_minus_the_chance_that_bco_takes_the_logarithm_of(reward, shift):
    (kto,), _ = losses_of("kto", (reward,), (True,), shift)
    (bco,), _ = losses_of("bco", (reward,), (True,), shift)
    assert 1 - kto == pytest.approx(exp(-bco), abs=1e-12)
    assert kto == pytest.approx(1 / (1 + exp(BETA * reward - shift)), abs=1e-12)
    assert bco == pytest.approx(log1p(exp(shift - BETA * reward)), rel=1e-9)


@pytest.mark.parametrize(
    ("one", "of_pairs"), [("apo_zero_unpaired", "apo_zero"), ("bco", "bco_pair")]
)
@given(chosen=REWARD, rejected=REWARD)
def test_without_a_shift_two_answers_have_the_loss_of_their_pair(one, of_pairs, chosen, rejected):
    sides = [
        Answers(
            logps=torch.tensor([[x]], dtype=torch.float64),
            ref_logps=torch.zeros(1, 1, dtype=torch.float64),
            mask=torch.ones(1, 1),
        )
        for x in (chosen, rejected)
    ]
    pair = preference_losses(Pairs(chosen=sides[0], rejected=sides[1]), settings(of_pairs)).losses
    assert sum(losses_of(one, (chosen, rejected), (True, False))[0]) == pytest.approx(pair.item())


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_the_baseline_is_a_mean_that_is_not_negative(ratios):
    z0 = baseline(sum(ratios), len(ratios))
    assert z0 == pytest.approx(max(0.0, sum(ratios) / len(ratios)))
    assert z0 >= 0


def test_a_large_reward_is_neither_infinite_nor_without_gradient_in_bco():
    (loss,), (gradient,) = losses_of("bco", (-1e6,), (True,))
    assert loss == pytest.approx(1e5)
    assert gradient == pytest.approx(-BETA)


def test_the_excess_of_two_classifications_over_their_pair_is_that_of_its_formula():
    expected = [
        log1p((exp(-a) + exp(b)) / (1 + exp(b - a)))
        for shift in labelled_answers.SHIFTS
        for a, b in (
            (0.5 * one - shift, 0.5 * other - shift)
            for one in labelled_answers.RATIOS
            for other in labelled_answers.RATIOS
        )
    ]
    assert labelled_answers.above_dpo() == pytest.approx(expected, abs=1e-12)
    assert min(expected) < 0.05  # the bound is nearly reached
