"""What self-distillation converges to: the worked example of its card, and its temperatures."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.laws.self_distillation import (
    composed_variation,
    expected_loss,
    fit_gradients,
    fitted,
    sampled,
)

START = torch.tensor([2.0, 1.0, 0.0, -3.0], dtype=torch.float64)
LOGITS = st.lists(st.floats(-6, 6), min_size=2, max_size=6)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (sampled(START, 1.0), [0.662272, 0.243636, 0.089629, 0.004462]),
        (sampled(START, 1.6), [0.535991, 0.286895, 0.153564, 0.02355]),
        (sampled(START, 1.6, top_k=3, top_p=0.95), [0.548918, 0.293815, 0.157268, 0.0]),
        (sampled(START, 1.6, top_k=3, top_p=0.8), [0.651355, 0.348645, 0.0, 0.0]),
        (sampled(fitted(sampled(START, 1.6)), 0.75), [0.610136, 0.265164, 0.11524, 0.009459]),
    ],
)
def test_the_worked_example_of_the_card(found, expected):
    assert found.tolist() == pytest.approx(expected, abs=5e-7)


def test_the_losses_of_the_card():
    target = sampled(START, 1.6, top_k=3, top_p=0.95)
    assert expected_loss(START, target).item() == pytest.approx(1.020428, abs=5e-7)
    assert expected_loss(fitted(target), target).item() == pytest.approx(0.980025, abs=5e-7)


@given(LOGITS, LOGITS, st.floats(0.3, 3))
def test_no_model_has_a_lower_expected_loss_than_the_fitted_one(start, other, temperature):
    target = sampled(torch.tensor(start, dtype=torch.float64), temperature)
    logits = torch.tensor((other * 6)[: len(start)], dtype=torch.float64)
    least = expected_loss(fitted(target), target)
    assert expected_loss(logits, target) >= least - 1e-12


@pytest.mark.parametrize(("fit", "decode"), [(1.6, 0.75), (0.5, 2.0), (3.0, 1.0)])
def test_temperatures_multiply_and_do_not_add(fit, decode):
    assert max(composed_variation(fit, decode)) < 1e-12
    assert max(fit_gradients(fit)) < 1e-12
    summed = sampled(START, fit + decode) - sampled(fitted(sampled(START, fit)), decode)
    assert summed.abs().sum() > 0.05


def test_truncation_breaks_the_law():
    target = sampled(START, 1.6, top_p=0.95)
    decoded = sampled(fitted(target), 0.75)
    assert (decoded - sampled(START, 1.2)).abs().sum() > 0.01
