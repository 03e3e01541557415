"""Laws of ratios and surrogates: each row of their tables beside its equation in plain numbers."""

from collections.abc import Callable, Mapping
from itertools import product
from math import exp, log

from core.equations.stated import ENGINE, KEPT, OLD, Tokens, clip, formula_error, mean, rollout
from core.losses.batch import PolicyConfig
from core.losses.policy import LOSS_TYPES
from core.losses.ratio import RATIOS

GREATEST_POWER = 709.0  # of e, in 64 bits
CONFIGS = (
    PolicyConfig(epsilon=0.2, epsilon_high=0.28),
    PolicyConfig(epsilon=0.2, epsilon_high=5.0, delta=4.0),
    PolicyConfig(vespo_k_pos=0.1, vespo_lambda_pos=0.0, vespo_k_neg=0.3, vespo_lambda_neg=0.001),
    PolicyConfig(vespo_k_pos=1e3, vespo_lambda_pos=0.0),  # whose weights leave the range
)

# From the log ratios of the trained tokens to the ratio of each.
STATED_RATIOS: Mapping[str, Callable[[Tokens], Tokens]] = {
    "token": lambda x: [exp(y) for y in x],
    "sequence": lambda x: [exp(mean(x))] * len(x),
    "sequence_token": lambda x: [exp(mean(x))] * len(x),
    "completion": lambda x: [exp(sum(x))] * len(x),
}


def ratio_errors() -> list[float]:
    """Return the largest relative error of each level of the ratio."""
    r, tokens = rollout()
    stated = {name: [*map(STATED_RATIOS[name], tokens)] for name in RATIOS}
    return [
        formula_error(level.ratio(r), tokens, lambda i, t, name=name: stated[name][i][t])
        for name, level in RATIOS.items()
    ]


def clipped_loss(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return -min(min(r, delta) A, clip(r, 1 - eps, 1 + eps_high) A)."""
    r = exp(x[t])
    capped = r if c.delta is None else min(r, c.delta)
    return -min(capped * a, clip(r, 1 - c.epsilon, 1 + c.upper_epsilon) * a)


def cispo(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return -min(r, eps_high) A log pi."""
    return -min(exp(x[t]), c.upper_epsilon) * a * (OLD[t] + x[t])


def sapo(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return -4 / tau sigmoid(tau (r - 1)) A."""
    tau = c.sapo_temperature_pos if a > 0 else c.sapo_temperature_neg
    return -4 / tau * a / (1 + exp(-clip(tau * (exp(x[t]) - 1), -500, 500)))


def vespo(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return -w^k exp(lambda (1 - w)) A log pi, w the product of ratios to the engine's policy."""
    return -_gamma(_log_product(x), a, c) * a * (OLD[t] + x[t])


def vespo_mean(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return the same with the geometric mean of the ratios as w."""
    return -_gamma(_log_product(x) / len(x), a, c) * a * (OLD[t] + x[t])


def _log_product(x: Tokens) -> float:
    """Return the sum of log ratios, each from -20 to 20, and from log(1e-8) to the engine's."""
    engine = [clip(log(ratio), log(1e-8), 20) for ratio in ENGINE[: len(x)]]
    return sum(clip(y, -20, 20) for y in x) + sum(engine)


def _gamma(log_ratio: float, a: float, c: PolicyConfig) -> float:
    """Return w^k exp(lambda (1 - w)) with lambda at least 1e-4; 0 if it leaves the range."""
    k, rate = (c.vespo_k_pos, c.vespo_lambda_pos) if a > 0 else (c.vespo_k_neg, c.vespo_lambda_neg)
    log_w, least_rate = clip(log_ratio, log(1e-8), 20), max(rate, 1e-4)
    power = least_rate + k * log_w - least_rate * exp(log_w)
    return exp(power) if power < GREATEST_POWER else 0.0


def gmpo(x: Tokens, t: int, a: float, c: PolicyConfig) -> float:
    """Return -A exp(mean log r) over selected tokens, log r bounded where that lowers the gain."""
    del t
    selected = [y for y, is_selected in zip(x, KEPT, strict=False) if is_selected]
    return -a * exp(
        mean([min(y, c.upper_epsilon) if a > 0 else max(y, -c.epsilon) for y in selected])
    )


SURROGATES: Mapping[str, Callable[[Tokens, int, float, PolicyConfig], float]] = {
    "grpo": clipped_loss,
    "cispo": cispo,
    "sapo": sapo,
    "vespo": vespo,
    "vespo_mean": vespo_mean,
    "gmpo": gmpo,
}


def surrogate_errors() -> list[float]:
    """Return the largest relative error of each surrogate with each of `CONFIGS`."""
    return [_surrogate_error(name, config) for name, config in product(SURROGATES, CONFIGS)]


def _surrogate_error(name: str, config: PolicyConfig) -> float:
    r, tokens = rollout()
    advantages = r.advantages.flatten().tolist()
    losses = LOSS_TYPES[name].surrogate(r, r.log_ratio.exp(), config)
    return formula_error(
        losses, tokens, lambda i, t: SURROGATES[name](tokens[i], t, advantages[i], config)
    )
