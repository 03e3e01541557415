"""Where k3 varies less than k1: wherever the reference nowhere doubles a token's probability."""

import numpy as np
import pytest

from core.laws.kl_variance import POLICIES, pair_variance


def drawn(random: np.random.Generator, spiky: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A pair of distributions over 2 to 8 tokens."""
    tokens = random.integers(2, 9)
    policy, reference = random.dirichlet(np.full(tokens, 0.3 if spiky else 3.0), size=2)
    return tuple(policy), tuple(reference)


def smaller(policy: tuple[float, ...], reference: tuple[float, ...]) -> bool:
    k3 = pair_variance("k3", policy, reference, sound=True)
    return k3 < pair_variance("k1", policy, reference)


def doubled(policy: tuple[float, ...], reference: tuple[float, ...]) -> bool:
    return max(q / p for p, q in zip(policy, reference, strict=True)) > 2


def test_k3_varies_less_than_k1_wherever_no_token_is_doubled():
    random = np.random.default_rng(0)
    pairs = [drawn(random, spiky=False) for _ in range(600)]
    near = [pair for pair in pairs if not doubled(*pair)]
    assert len(near) > 100
    assert all(smaller(*pair) for pair in near)
    assert all(smaller(*pair) and not doubled(*pair) for pair in POLICIES)


def test_beyond_it_k3_often_varies_more():
    random = np.random.default_rng(1)
    far = [pair for pair in (drawn(random, spiky=True) for _ in range(200)) if doubled(*pair)]
    assert 0.2 < np.mean([smaller(*pair) for pair in far]) < 0.8


@pytest.mark.parametrize(("estimator", "sound"), [("k1", False), ("k2", False), ("k3", True)])
def test_only_k3_is_sound(estimator: str, sound: bool):
    found = [pair_variance(estimator, *pair, sound=True) for pair in POLICIES]
    assert all(np.isfinite(found)) == sound
