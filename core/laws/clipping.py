"""Laws of clips on single tokens: which lose their gradient, and the weights of the others."""

from core.laws.gradients import METHODS, weights
from core.losses.batch import PolicyConfig

MOVED = tuple(0.05 * (20 / 0.05) ** (step / 400) for step in range(401))  # ratios of 0.05 to 20
FAR = tuple(float(step) for step in range(1, 101))  # ratios up to 100
SIGNS = (1.0, -1.0)


def silent_tokens(method: str) -> list[float]:
    """Count the ratios from 0.05 to 20 at which a token has no gradient, for each sign of A."""
    token_weights = (weights(METHODS[method], MOVED, sign) for sign in SIGNS)
    return [
        float(sum(weight == 0 for weight in signed_weights)) for signed_weights in token_weights
    ]


def silent_at(epsilon: float) -> list[float]:
    """Count the same for PPO's clip with this width on both sides."""
    clip = PolicyConfig(epsilon=epsilon)
    return [float(sum(weight == 0 for weight in weights(clip, MOVED, sign))) for sign in SIGNS]


def greatest_weights(method: str) -> list[float]:
    """Return the greatest weight at ratios up to 100, for each sign of an advantage of size 1."""
    return [max(weights(METHODS[method], FAR, sign)) for sign in SIGNS]


def cap(method: str) -> float:
    """Return the upper bound that the method sets to its weights."""
    return METHODS[method].upper_epsilon
