"""PAPO's three terms, against numbers worked out by hand."""

from math import exp, log

import pytest
import torch

from core.laws.perception import agreement_error, least_terms
from core.losses.perception import perception_kl, perception_objective, sampled_entropy

MASK = torch.tensor([[1.0, 1.0, 0.0]])
SEEN, MASKED = (
    torch.tensor([x], dtype=torch.float64).log() for x in ((0.8, 0.5, 0.1), (0.2, 0.5, 0.9))
)


def test_a_token_that_needs_the_picture_has_a_divergence_and_another_has_none():
    found = perception_kl(SEEN, MASKED)[0].tolist()
    assert found[:2] == pytest.approx([4 - log(4) - 1, 0.0])
    assert min(least_terms()) >= 0
    assert agreement_error() == 0


def test_a_divergence_that_is_nothing_for_other_tokens_breaks_the_law(monkeypatch):
    monkeypatch.setattr("core.laws.perception.perception_kl", lambda logps, _: 0 * logps)
    assert agreement_error() > 0


def test_the_objective_raises_the_divergence_and_lowers_both_entropies():
    entropy, masked = -(log(0.8) + log(0.5)) / 2, -(log(0.2) + log(0.5)) / 2
    assert sampled_entropy(SEEN, MASK).tolist() == pytest.approx([entropy])
    found = perception_objective(SEEN, MASKED, MASK, gamma=0.02, eta=0.05, eta_masked=0.03)
    expected = 0.02 * (3 - log(4)) / 2 - 0.05 * entropy - 0.03 * masked
    assert found.tolist() == pytest.approx([expected])


def test_padding_plays_no_part():
    other = torch.tensor([[0.0, 0.0, 5.0]])
    settings = {"gamma": 1.0, "eta": 1.0, "eta_masked": 1.0}
    plain = perception_objective(SEEN, MASKED, MASK, **settings)
    assert torch.equal(plain, perception_objective(SEEN + other, MASKED - other, MASK, **settings))


def test_the_divergence_moves_the_seen_pass_alone():
    seen, masked = SEEN.clone().requires_grad_(), MASKED.clone().requires_grad_()
    settings = {"gamma": 1.0, "eta": 0.0}
    whole = perception_objective(seen, masked, MASK, eta_masked=0.0, **settings)
    gradient, other = torch.autograd.grad(whole.sum(), (seen, masked))
    ratio = exp(log(4))
    assert gradient[0].tolist() == pytest.approx([(ratio - 1) / 2, 0.0, 0.0])
    assert not other.any()
    learned = perception_objective(seen, masked, MASK, eta_masked=1.0, **settings)
    (other,) = torch.autograd.grad(learned.sum(), masked)
    assert other[0].tolist() == pytest.approx([0.5, 0.5, 0.0])
