"""Soft clips: the gates of SAPO and VESPO, by the gradients of their losses."""

import torch

from core.laws.gradients import METHODS, batches, gradient, weights
from core.losses.aggregate import AGGREGATES, Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.surrogate import gamma_weight, sapo_surrogate

TEMPERATURES = (0.5, 1.0, 1.05, 2.0)
NEAR = tuple(0.5 + step / 100 for step in range(151))  # ratios of 0.5 to 2
SIGNS = (1.0, -1.0)
GRID = tuple(step / 1000 for step in range(10, 5001))  # ratios of whole answers
DEVIATIONS = (0.5, 1.0, 2.0, 3.0)  # of the logarithm of such ratios
DRIFTS = (0.05, 0.2, 1.0)  # of log ratios of tokens


def soft(temperature: float) -> PolicyConfig:
    """SAPO with one temperature for both signs."""
    return PolicyConfig(
        loss_type="sapo", sapo_temperature_pos=temperature, sapo_temperature_neg=temperature
    )


def gate_slopes(ratio: float) -> list[float]:
    """The slope of SAPO's gate at a ratio for each of `TEMPERATURES` and each sign."""
    return [
        weights(soft(temperature), (ratio,), sign, by_ratio=True)[0]
        for temperature in TEMPERATURES
        for sign in SIGNS
    ]


def least_weights(method: str) -> list[float]:
    """The least weight of a token at ratios of 0.5 to 2, for each sign of the advantage."""
    return [min(weights(METHODS[method], NEAR, sign)) for sign in SIGNS]


def loss_weight(ratio: float, temperature: float) -> float:
    """The weight of a token with that ratio and a negative advantage."""
    c = PolicyConfig(loss_type="sapo", sapo_temperature_neg=temperature)
    return weights(c, (ratio,), -1.0)[0]


def mean_gate_errors(temperature: float) -> list[float]:
    """|mean of the gates' slopes at 1 + z - the slope at 1 + mean of z| of each answer."""
    return [
        abs(_slope(1 + z, temperature).mean().item() - _slope(1 + z.mean(), temperature).item())
        for z in _log_ratios()
    ]


def mean_gate_bounds(temperature: float) -> list[float]:
    """tau^2 / 4 times the variance of z, by the greatest second derivative of the slope."""
    return [temperature**2 / 4 * z.var(correction=0).item() for z in _log_ratios()]


def _log_ratios() -> list[torch.Tensor]:
    """Those of the tokens of each answer, for each of `DRIFTS`."""
    return [
        logs[kept].detach()
        for drift in DRIFTS
        for r in batches(drift)
        for logs, kept in zip(r.log_ratio, r.mask.bool(), strict=True)
    ]


def _slope(ratio: torch.Tensor, temperature: float) -> torch.Tensor:
    """d gate / d ratio at each of these ratios, the advantage being 1."""
    given = ratio.reshape(1, -1).clone().requires_grad_()
    still = torch.zeros_like(given)
    r = Rollout(
        logps=still, old_logps=still, advantages=torch.ones_like(given[:, :1]), mask=still + 1
    )
    return -torch.autograd.grad(sapo_surrogate(r, given, soft(temperature)).sum(), given)[
        0
    ].squeeze(0)


def gamma(log_ratios: torch.Tensor, sign: float) -> torch.Tensor:
    """VESPO's phi of answers whose ratios have these logarithms, for a sign of the advantage."""
    moved = log_ratios.unsqueeze(1)
    still = torch.zeros_like(moved)
    r = Rollout(logps=moved, old_logps=still, advantages=still + sign, mask=still + 1)
    return gamma_weight(r, moved.exp(), METHODS["vespo"]).squeeze(1)


def gamma_shape() -> list[float]:
    """Phi at 1, and the ratio where it is greatest on a grid, for each sign."""
    grid = torch.tensor(GRID, dtype=torch.float64)
    one = torch.zeros(1, dtype=torch.float64)
    peaks = [grid[gamma(grid.log(), sign).argmax()].item() for sign in SIGNS]
    return [*(gamma(one, sign).item() for sign in SIGNS), *peaks]


def gamma_constants() -> list[float]:
    """1, and k / lambda, for each sign: what `gamma_shape` has to be."""
    c = METHODS["vespo"]
    return [1.0, 1.0, c.vespo_k_pos / c.vespo_lambda_pos, c.vespo_k_neg / c.vespo_lambda_neg]


def gamma_gradient_gap() -> list[float]:
    """The greatest |d loss / d log pi + phi(W) A / N| in each batch of N tokens, off policy."""
    found: list[float] = []
    for r in batches(0.2):
        phi = gamma_weight(r, r.log_ratio.exp(), METHODS["vespo"])
        expected = -phi * r.advantages * r.mask / r.mask.sum()
        found.append(float((gradient(r, METHODS["vespo"])[1] - expected).abs().max()))
    return found


def reinforce_gap(method: str) -> list[float]:
    """The greatest difference from the gradient of -A log pi, averaged over tokens, at ratio 1."""
    found: list[float] = []
    for r in batches(0.0):
        mean = AGGREGATES["global_token_mean"].mean
        loss = mean(-r.advantages * r.logps, r.mask, Scale(rollout_tokens=r.mask.sum()))
        plain = torch.autograd.grad(loss, r.logps)[0]
        found.append(float((gradient(r, METHODS[method])[1] - plain).abs().max()))
    return found


def ratio_variances(*, gate: bool) -> list[float]:
    """The variance of W, or of phi(W), for each of `DEVIATIONS` of log W and each sign.

    W is log-normal with mean 1, as of two policies; log W is summed over a fine grid.
    """
    found: list[float] = []
    for deviation in DEVIATIONS:
        normal = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
        share = torch.softmax(-normal.square() / 2, 0)
        logs = deviation * normal - deviation**2 / 2
        for sign in SIGNS:
            values = gamma(logs, sign) if gate else logs.exp()
            mean = (share * values).sum()
            found.append(float((share * (values - mean).square()).sum()))
    return found
