"""Laws of the variance of KL estimators, as exact sums over categorical policies.

With u = reference / policy, the derivative of k3 = u - 1 - log u by k1 = -log u is 1 - u. So k3 is
a contraction of k1 and varies less if u is at most 2 for every token; otherwise it need not.
"""

import torch

from core.losses.kl import ESTIMATORS

# Pairs (policy, reference) of categorical distributions, from nearly equal to u = 2.
POLICIES: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((0.50, 0.30, 0.20), (0.48, 0.31, 0.21)),
    ((0.50, 0.30, 0.20), (0.45, 0.33, 0.22)),
    ((0.70, 0.20, 0.10), (0.60, 0.25, 0.15)),
    ((0.25, 0.25, 0.25, 0.25), (0.30, 0.20, 0.30, 0.20)),
    ((0.90, 0.05, 0.03, 0.02), (0.80, 0.10, 0.06, 0.04)),
)


def variance(estimator: str, *, sound: bool = False) -> list[float]:
    """Return the variance of `k1`, `k2` or `k3` under the policy, for each pair of `POLICIES`.

    Args:
        estimator: a row of `core.losses.kl.ESTIMATORS`.
        sound: whether to return infinity if the estimator is negative for some token, or if its
            mean is not KL(policy || reference).
    """
    return [pair_variance(estimator, *pair, sound=sound) for pair in POLICIES]


def pair_variance(
    estimator: str, policy: tuple[float, ...], reference: tuple[float, ...], *, sound: bool = False
) -> float:
    """Return the variance of an estimator for one pair; `sound` as in `variance`."""
    p, q = (torch.tensor([side], dtype=torch.float64) for side in (policy, reference))
    values = ESTIMATORS[estimator](p.log(), q.log())
    mean, kl = (p * values).sum(), (p * (p / q).log()).sum()
    if sound and (values.min() < 0 or abs(mean - kl) > 1e-12):
        return float("inf")
    return float((p * (values - mean).square()).sum())
