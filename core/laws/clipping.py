"""What clips do to single tokens: which lose their gradient, and how much the others weigh."""

from core.laws.gradients import METHODS, weights

MOVED = tuple(0.05 * (20 / 0.05) ** (step / 400) for step in range(401))  # ratios of 0.05 to 20
FAR = tuple(float(step) for step in range(1, 101))  # ratios up to 100
SIGNS = (1.0, -1.0)


def silent_tokens(method: str) -> list[float]:
    """How many tokens with ratios of 0.05 to 20 have no gradient, for each sign of A."""
    found = (weights(METHODS[method], MOVED, sign) for sign in SIGNS)
    return [float(sum(weight == 0 for weight in each)) for each in found]


def greatest_weights(method: str) -> list[float]:
    """The greatest weight at ratios up to 100, for each sign of an advantage of size 1."""
    return [max(weights(METHODS[method], FAR, sign)) for sign in SIGNS]


def cap(method: str) -> float:
    """The upper bound that the method sets to its weights."""
    return METHODS[method].upper_epsilon
