"""Losses of online pairs and of Nash-MD: worked examples, and what they agree with."""

from dataclasses import fields

import pytest
import torch

import core
from core.losses.online import exploration, nash_md_losses, online_dpo_losses
from core.losses.paired_answers import Answers
from core.losses.preference import PreferenceSettings
from core.rollout.native.mixture import geometric_mixture

CHOSEN, REF_CHOSEN, REJECTED, REF_REJECTED = -12.3, -13.5, -15.7, -15.1
ORDERS = {"chosen first": (0.5, -0.5), "chosen second": (-0.5, 0.5)}


def pair(order):
    """The pair of the worked examples, each answer of one token, and the leaf of its logps."""
    rows = [(CHOSEN, REF_CHOSEN), (REJECTED, REF_REJECTED)]
    if order == "chosen second":
        rows.reverse()
    logps, ref_logps = torch.tensor(rows, dtype=torch.float64).T.unsqueeze(-1).unbind(0)
    leaf = logps.clone().requires_grad_()
    answers = Answers(logps=leaf, ref_logps=ref_logps, mask=torch.ones(2, 1))
    return leaf, answers, torch.tensor(ORDERS[order], dtype=torch.float64)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("loss_type", "beta", "loss", "slope"),
    [
        ("sigmoid", 0.1, 0.607192, -0.045512),
        ("ipo", 0.1, 10.24, -6.4),
        ("hinge", 0.002, 0.9964, -0.002),
    ],
)
def test_online_dpo_as_worked_by_hand(loss_type, beta, loss, slope, order):
    leaf, answers, advantages = pair(order)
    losses = online_dpo_losses(answers, advantages, loss_type, beta).losses
    assert losses.tolist() == pytest.approx([loss], abs=1e-6)
    losses.sum().backward()
    slopes = [slope, -slope] if order == "chosen first" else [-slope, slope]
    assert leaf.grad.flatten().tolist() == pytest.approx(slopes, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "loss", "slopes"),
    [(1e-5, 0.607035, (-0.045512, 0.045522)), (0.1, -0.962808, (-0.045512, 0.145512))],
)
def test_xpo_as_worked_by_hand(alpha, loss, slopes):
    leaf, answers, advantages = pair("chosen first")  # the rejected one is the reference's
    losses = online_dpo_losses(answers, advantages, "sigmoid", 0.1).losses
    losses = losses + exploration(answers, alpha)
    assert losses.tolist() == pytest.approx([loss], abs=1e-6)
    losses.sum().backward()
    assert leaf.grad.flatten().tolist() == pytest.approx(slopes, abs=1e-6)


def test_the_bonus_is_of_the_reference_s_answer_when_it_is_chosen_too():
    leaf, answers, advantages = pair("chosen second")
    (online_dpo_losses(answers, advantages, "sigmoid", 0.1).losses * 0).sum().backward()
    leaf.grad = None
    exploration(answers, 0.1).sum().backward()
    assert leaf.grad.flatten().tolist() == [0.0, pytest.approx(0.1)]


def test_a_pair_that_is_not_judged_has_no_loss():
    leaf, answers, _ = pair("chosen first")
    losses = online_dpo_losses(answers, torch.zeros(2).double(), "sigmoid", 0.1).losses
    losses.sum().backward()
    assert losses.tolist() == [0.0]
    assert not leaf.grad.any()


POLICY, REFERENCE = [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]
WINS = [0.5, 0.8, 0.3]


def logs(numbers):
    return torch.tensor(numbers, dtype=torch.float64).log()


@pytest.mark.parametrize("kl_weight", ["sequence", "token"])
def test_nash_md_as_worked_by_hand(kl_weight):
    mixed = geometric_mixture(logs(POLICY), logs(REFERENCE), 0.25).softmax(-1)
    assert mixed.tolist() == pytest.approx([0.414274, 0.355129, 0.230598], abs=1e-6)
    wins = mixed @ torch.tensor(WINS, dtype=torch.float64)
    assert wins.item() == pytest.approx(0.560419, abs=1e-6)
    leaf = logs(POLICY[:1]).view(1, 1).requires_grad_()
    reference = logs(REFERENCE[:1]).view(1, 1)
    answers = Answers(logps=leaf, ref_logps=reference, mask=torch.ones(1, 1))
    result = nash_md_losses(answers, wins.view(1) - 0.5, 0.1, kl_weight)
    assert result.losses.item() == pytest.approx(-0.021633, abs=1e-6)
    result.losses.sum().backward()
    assert leaf.grad.item() == pytest.approx(0.03121, abs=1e-6)  # descends, the card ascends


def test_the_mixture_that_trl_has_by_default():
    mixed = geometric_mixture(logs(POLICY), logs(REFERENCE), 0.5).softmax(-1)
    assert mixed.tolist() == pytest.approx([0.333407, 0.408338, 0.258256], abs=1e-6)


def test_weights_of_the_kl_agree_in_answers_of_one_token_only():
    draw = torch.Generator().manual_seed(1)
    logps, reference = (-torch.rand(3, 4, generator=draw, dtype=torch.float64) for _ in range(2))
    mask = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    answers = Answers(logps=logps, ref_logps=reference, mask=mask)
    zeros = torch.zeros(3).double()
    whole, own = (nash_md_losses(answers, zeros, 0.2, k).losses for k in ("sequence", "token"))
    ratios = ((logps - reference) * mask).sum(1)
    torch.testing.assert_close(whole, 0.2 * ratios * (logps * mask).sum(1))
    torch.testing.assert_close(own, 0.2 * ((logps - reference) * logps * mask).sum(1))
    assert whole[0] == own[0]
    assert (whole[1:] != own[1:]).all()


def test_settings_of_their_own_have_the_defaults_of_dpo():
    own = {f.name: f.default for f in fields(PreferenceSettings) if f.name != "loss_type"}
    dpo = {f.name: f.default for f in fields(core.DPOConfig)}
    assert own == {name: dpo[name] for name in own}
