"""The clipped surrogate against its closed form, and where another one breaks the laws."""

import pytest

from core.laws import clip_bound
from core.laws.clip_bound import ADVANTAGES, RATIO, bound_gap, expected_gradients, gradients
from core.losses.surrogate import cispo_surrogate


def at(values, advantage, ratio):
    return values[ADVANTAGES.index(advantage) * len(RATIO) + RATIO.index(ratio)]


def test_the_clipped_objective_is_never_above_the_other():
    gaps = bound_gap()
    assert max(gaps) == 0
    assert at(gaps, 1.0, 1.5) == pytest.approx(1.2 - 1.5)
    assert at(gaps, -1.0, 1.5) == 0
    assert at(gaps, -2.0, 0.5) == pytest.approx(-2 * 0.8 + 2 * 0.5)


def test_its_gradient_is_none_where_the_gain_is_clipped():
    assert gradients() == pytest.approx(expected_gradients(), abs=1e-15)
    assert at(gradients(), 1.0, 1.5) == 0
    assert at(gradients(), -1.0, 1.5) == pytest.approx(-1.5)


def test_another_surrogate_keeps_those_gradients(monkeypatch):
    monkeypatch.setattr(clip_bound, "clipped_surrogate", cispo_surrogate)
    assert at(gradients(), 1.0, 1.5) != 0
