"""Which estimators of the KL have its gradient on policy."""

from math import log

import pytest

from core.laws.kl_gradient import gradient_errors
from core.laws.kl_variance import POLICIES


def test_k2_has_the_gradient_of_the_kl_and_k1_and_k3_have_not():
    assert max(gradient_errors("k2")) < 1e-15
    assert min(gradient_errors("k3")) > 1e-5
    # The expected gradient of k1 is that of a sum of probabilities, which is 0.
    policy, reference = POLICIES[0]
    logs = [log(p / q) for p, q in zip(policy, reference, strict=True)]
    kl = sum(p * x for p, x in zip(policy, logs, strict=True))
    exact = sum((p * (x - kl)) ** 2 for p, x in zip(policy, logs, strict=True)) ** 0.5
    assert gradient_errors("k1")[0] == pytest.approx(exact, rel=1e-9)
