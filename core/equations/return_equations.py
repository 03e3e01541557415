"""Laws of advantages of tokens: KL in the reward, rewards to go, `gae` and whitening."""

from math import nan, sqrt
from statistics import fmean, variance

import torch

from core.equations.advantage_equations import Numbers, error
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored
from core.losses.returns import gae, whiten, with_kl

ADDED = 1e-8  # to the variance, as TRL and verl do
KL_COEF, GAMMA, LAM, PENALTY_GAMMA = 0.3, 0.9, 0.8, 0.7
LENGTH = 4
# Places of the trained tokens of each completion: some follow tokens of an environment.
TRAINED = ((0, 1, 2, 3), (0, 1), (1, 3), (2,))
OUTCOMES = (1.0, nan, -0.5, 0.25)
PAID = (1.0, 0.0, -0.5, 0.25)  # an absent reward counts 0
PLACES = tuple(range(LENGTH))


def _table(first: float, step: float) -> list[Numbers]:
    """Return unlike numbers, one for each token."""
    return [[first + step * ((3 * i + 5 * t) % 7) for t in PLACES] for i in range(len(TRAINED))]


KL, VALUES, PENALTIES = _table(-0.2, 0.1), _table(0.5, -0.15), _table(-0.3, 0.07)


def token_rewards(i: int, outcome: float) -> Numbers:
    """Return the reward of each trained token: the outcome at the last one, minus weighted KL."""
    places = TRAINED[i]
    return [outcome * (t == places[-1]) - KL_COEF * KL[i][t] for t in places]


def discounted_sums(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Numbers:
    """Return sum_l (gamma lam)^l (r + gamma V' - V) from each token on; V' is 0 at the end."""
    ahead = [*values[1:], 0.0]
    deltas = [r + gamma * after - v for r, v, after in zip(rewards, values, ahead, strict=True)]
    return [
        sum((gamma * lam) ** step * delta for step, delta in enumerate(deltas[t:]))
        for t in range(len(deltas))
    ]


def spread_out(rows: list[Numbers]) -> Numbers:
    """Return the numbers of trained tokens at their places, and 0 at the others."""
    return [
        dict(zip(places, row, strict=True)).get(t, 0.0)
        for places, row in zip(TRAINED, rows, strict=True)
        for t in PLACES
    ]


def whitened_rows(rows: list[Numbers]) -> list[Numbers]:
    """Return the numbers minus their mean, divided by sqrt(variance + 1e-8)."""
    flat = [x for row in rows for x in row]
    divisor = sqrt((variance(flat) if len(flat) > 1 else 0.0) + ADDED)
    return [[(x - fmean(flat)) / divisor for x in row] for row in rows]


def _mask() -> torch.Tensor:
    trained = [[float(t in places) for t in PLACES] for places in TRAINED]
    return torch.tensor(trained, dtype=torch.float64)


def _scored_outcomes(*, penalties: bool) -> tuple[Scored, AdvantageSettings]:
    rewards, kl, values, extra = (
        torch.tensor(table, dtype=torch.float64) for table in (OUTCOMES, KL, VALUES, PENALTIES)
    )
    settings = AdvantageSettings(
        weights=torch.ones(1, dtype=torch.float64),
        scale="none",
        aggregation="sum_then_normalize",
        kl_coef=KL_COEF,
        gamma=GAMMA,
        lam=LAM,
        penalty_gamma=PENALTY_GAMMA,
    )
    return Scored(
        rewards=rewards.unsqueeze(1),
        group=2,
        length=LENGTH,
        kl=kl,
        values=values,
        penalties=extra * _mask() if penalties else None,
        mask=_mask(),
    ), settings


def token_errors() -> Numbers:
    """Return the errors of rewards to go and of `gae`, whitened, and of `gae` with penalties."""
    paid = [token_rewards(i, reward) for i, reward in enumerate(PAID)]
    values = _at_trained(VALUES)
    return [
        _estimate_error("to_go", [discounted_sums(r, [0.0] * len(r), 1.0, 1.0) for r in paid]),
        _estimate_error("gae", [*map(_generalised_advantages, paid, values)]),
        _estimate_error("gae", [*map(_with_penalties, range(len(PAID)))], penalties=True),
    ]


def _at_trained(table: list[Numbers]) -> list[Numbers]:
    return [[row[t] for t in places] for row, places in zip(table, TRAINED, strict=True)]


def _generalised_advantages(rewards: Numbers, values: Numbers) -> Numbers:
    return discounted_sums(rewards, values, GAMMA, LAM)


def _with_penalties(i: int) -> Numbers:
    """Return `gae` of the outcome without its penalties, plus that of the penalties."""
    penalties, values = _at_trained(PENALTIES)[i], _at_trained(VALUES)[i]
    outcome = _generalised_advantages(token_rewards(i, PAID[i] - sum(penalties)), values)
    extra = discounted_sums(penalties, [0.0] * len(values), PENALTY_GAMMA, LAM)
    return [a + b for a, b in zip(outcome, extra, strict=True)]


def _estimate_error(name: str, stated: list[Numbers], *, penalties: bool = False) -> float:
    values = ESTIMATORS[name].advantages(*_scored_outcomes(penalties=penalties))
    return error(values, spread_out(whitened_rows(stated)))


def placed_errors() -> Numbers:
    """Return the errors of rewards of tokens and of `gae`, which are 0 at tokens not trained."""
    kl, values, paid = (torch.tensor(table, dtype=torch.float64) for table in (KL, VALUES, PAID))
    rewards = with_kl(paid, kl, _mask(), KL_COEF)
    stated = [token_rewards(i, reward) for i, reward in enumerate(PAID)]
    advantages = gae(rewards, values, _mask(), gamma=GAMMA, lam=LAM)
    return [
        error(rewards, spread_out(stated)),
        error(advantages, spread_out([*map(_generalised_advantages, stated, _at_trained(VALUES))])),
    ]


def small_spread_errors() -> Numbers:
    """Return errors of whitening two nearly equal numbers, and one number."""
    pair, mask = torch.tensor([[1e-4, 3e-4, 5.0]], dtype=torch.float64), torch.tensor([[1.0, 1, 0]])
    single = torch.tensor([[1.0, 0, 0]])
    stated = whitened_rows([[1e-4, 3e-4]])[0]
    return [
        error(whiten(pair, mask), [*stated, 0.0]),
        error(whiten(pair, single), [0.0, 0.0, 0.0]),
    ]
