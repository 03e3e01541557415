"""Denoisers of uniform noise: the card's worked example, limits, and laws that notice a change."""

from math import exp, log, log1p

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from law_mutants import holds, laws_of, survivors

from core.laws.uniform_noise import KEPT, SYMBOLS, initial_losses
from core.losses.diffusion import MODEL_PREDICTIONS, denoising_loss, leave_one_out_denoiser

FILE = "core/losses/diffusion.py"


def row(values):
    return torch.tensor([values], dtype=torch.float64)


def denoised(logits, noisy, kept):
    level = torch.tensor([kept], dtype=torch.float64)
    return leave_one_out_denoiser(row(logits), torch.tensor([noisy]), level)[0]


def test_the_worked_example_of_the_card():
    logits, noisy, kept = [0.2, -0.1, 0.4, 0.0], 2, 0.6
    assert row(logits).softmax(-1)[0].tolist() == pytest.approx(
        [0.264484, 0.195934, 0.323041, 0.216541], abs=5e-7
    )
    found = denoised(logits, noisy, kept)
    assert (found[noisy] - logits[noisy]).item() == pytest.approx(1.94591, abs=5e-6)
    assert found.softmax(-1).tolist() == pytest.approx(
        [0.090014, 0.066684, 0.769604, 0.073697], abs=5e-7
    )
    level = torch.tensor([kept], dtype=torch.float64)
    losses = [
        denoising_loss("mean_loo", row(logits), torch.tensor([noisy]), level, torch.tensor([clean]))
        for clean in (2, 0)
    ]
    assert [loss.item() for loss in losses] == pytest.approx([0.261879, 2.407789], abs=5e-7)


LOGITS = st.lists(st.floats(-5, 5), min_size=3, max_size=3)


@given(LOGITS, st.integers(0, 2), st.floats(0.01, 0.99), st.floats(-9, 9))
def test_a_shift_of_all_logits_changes_no_denoiser(logits, noisy, kept, shift):
    moved = denoised([value + shift for value in logits], noisy, kept).softmax(-1)
    assert moved.tolist() == pytest.approx(denoised(logits, noisy, kept).softmax(-1).tolist())


@given(LOGITS, st.integers(0, 2))
def test_much_noise_leaves_the_posterior_and_little_the_noisy_token(logits, noisy):
    posterior = row(logits).softmax(-1)[0].tolist()
    assert denoised(logits, noisy, 1e-12).softmax(-1).tolist() == pytest.approx(posterior)
    assert denoised(logits, noisy, 1 - 1e-12).softmax(-1)[noisy].item() > 1 - 1e-6


def test_an_untrained_denoiser_has_the_entropy_of_a_token_given_its_noisy_one():
    """With all logits 0 a token is kept with alpha + (1 - alpha) / K, or any other one."""
    assert initial_losses("mean") == pytest.approx([log(SYMBOLS)] * len(KEPT), rel=1e-12)
    kept = [alpha + (1 - alpha) / SYMBOLS for alpha in KEPT]
    entropies = [-p * log(p) - (1 - p) * log((1 - p) / (SYMBOLS - 1)) for p in kept]
    assert initial_losses("mean_loo") == pytest.approx(entropies, rel=1e-12)


def test_the_gradient_of_the_loss_is_that_of_the_denoisers_cross_entropy():
    logits = row([0.2, -0.1, 0.4, 0.0]).requires_grad_()
    for name in MODEL_PREDICTIONS:
        arguments = (torch.tensor([2]), torch.tensor([0.6], dtype=torch.float64))
        loss = denoising_loss(name, logits, *arguments, torch.tensor([0]))
        (gradient,) = torch.autograd.grad(loss.sum(), logits)
        shift = log1p(4 * 0.6 / 0.4) if name == "mean_loo" else 0.0
        odds = [exp(value + shift * (place == 2)) for place, value in enumerate(logits[0].tolist())]
        expected = [odd / sum(odds) - (place == 0) for place, odd in enumerate(odds)]
        assert gradient[0].tolist() == pytest.approx(expected, rel=1e-9)


def test_the_laws_hold_and_notice_every_change():
    laws = laws_of("udlm-loo")
    assert len(laws) == 2
    assert all(map(holds, laws))
    assert survivors(laws, FILE) == []
