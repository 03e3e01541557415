"""Laws of soft clips: the gates of SAPO and VESPO, from the gradients of their losses."""

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
    """Return the settings of SAPO with one temperature for both signs of the advantage."""
    return PolicyConfig(
        loss_type="sapo", sapo_temperature_pos=temperature, sapo_temperature_neg=temperature
    )


def gate_slopes(ratio: float) -> list[float]:
    """Return the slope of SAPO's gate at a ratio, for each of `TEMPERATURES` and each sign."""
    return [
        weights(soft(temperature), (ratio,), sign, by_ratio=True)[0]
        for temperature in TEMPERATURES
        for sign in SIGNS
    ]


def least_weights(method: str) -> list[float]:
    """Return the least weight of a token at ratios of 0.5 to 2, for each sign of the advantage."""
    return [min(weights(METHODS[method], NEAR, sign)) for sign in SIGNS]


def loss_weight(ratio: float, temperature: float) -> float:
    """Return the weight in SAPO's loss of a token with this ratio and a negative advantage."""
    c = PolicyConfig(loss_type="sapo", sapo_temperature_neg=temperature)
    return weights(c, (ratio,), -1.0)[0]


def mean_gate_errors(temperature: float) -> list[float]:
    """Return |mean of the slopes at 1 + z - slope at 1 + mean z| of each answer's log ratios z."""
    return [
        abs(_slope(1 + z, temperature).mean().item() - _slope(1 + z.mean(), temperature).item())
        for z in _log_ratios()
    ]


def mean_gate_bounds(temperature: float) -> list[float]:
    """Return tau^2 / 4 times the variance of z, which bounds `mean_gate_errors`."""
    return [temperature**2 / 4 * z.var(correction=0).item() for z in _log_ratios()]


def _log_ratios() -> list[torch.Tensor]:
    """Return the log ratios of the tokens of each answer, for each of `DRIFTS`."""
    return [
        logs[is_token].detach()
        for drift in DRIFTS
        for r in batches(drift)
        for logs, is_token in zip(r.log_ratio, r.mask.bool(), strict=True)
    ]


def _slope(ratio: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the derivative of SAPO's gate at each of these ratios, for an advantage of 1."""
    ratios = ratio.reshape(1, -1).clone().requires_grad_()
    zeros = torch.zeros_like(ratios)
    r = Rollout(
        logps=zeros, old_logps=zeros, advantages=torch.ones_like(ratios[:, :1]), mask=zeros + 1
    )
    return -torch.autograd.grad(sapo_surrogate(r, ratios, soft(temperature)).sum(), ratios)[
        0
    ].squeeze(0)


def gamma(log_ratios: torch.Tensor, sign: float) -> torch.Tensor:
    """Return VESPO's weight phi of answers with these log ratios, for a sign of the advantage."""
    log_ratio_column = log_ratios.unsqueeze(1)
    zeros = torch.zeros_like(log_ratio_column)
    r = Rollout(logps=log_ratio_column, old_logps=zeros, advantages=zeros + sign, mask=zeros + 1)
    return gamma_weight(r, log_ratio_column.exp(), METHODS["vespo"]).squeeze(1)


def gamma_shape() -> list[float]:
    """Return phi at ratio 1 for each sign, then the ratio of `GRID` with the largest phi."""
    grid = torch.tensor(GRID, dtype=torch.float64)
    log_one = torch.zeros(1, dtype=torch.float64)
    peaks = [grid[gamma(grid.log(), sign).argmax()].item() for sign in SIGNS]
    return [*(gamma(log_one, sign).item() for sign in SIGNS), *peaks]


def gamma_constants() -> list[float]:
    """Return what `gamma_shape` has to be: 1 for each sign, then k / lambda for each sign."""
    c = METHODS["vespo"]
    return [1.0, 1.0, c.vespo_k_pos / c.vespo_lambda_pos, c.vespo_k_neg / c.vespo_lambda_neg]


def gamma_gradient_gap() -> list[float]:
    """Return the largest |d loss / d log pi + phi(W) A / N| of each off-policy batch, N tokens."""
    gaps: list[float] = []
    for r in batches(0.2):
        phi = gamma_weight(r, r.log_ratio.exp(), METHODS["vespo"])
        expected = -phi * r.advantages * r.mask / r.mask.sum()
        gaps.append(float((gradient(r, METHODS["vespo"])[1] - expected).abs().max()))
    return gaps


def reinforce_gap(method: str) -> list[float]:
    """Return the largest difference from the gradient of mean(-A log pi), by batch at ratio 1."""
    gaps: list[float] = []
    for r in batches(0.0):
        mean = AGGREGATES["global_token_mean"].mean
        loss = mean(-r.advantages * r.logps, r.mask, Scale(rollout_tokens=r.mask.sum()))
        plain = torch.autograd.grad(loss, r.logps)[0]
        gaps.append(float((gradient(r, METHODS[method])[1] - plain).abs().max()))
    return gaps


def ratio_variances(*, gate: bool) -> list[float]:
    """Return the variance of the ratio W, for each of `DEVIATIONS` of log W and each sign.

    W is log-normal with mean 1, as between two policies; sums over log W use a fine grid.

    Args:
        gate: whether the variance is that of phi(W) instead.
    """
    variances: list[float] = []
    for deviation in DEVIATIONS:
        normal = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
        share = torch.softmax(-normal.square() / 2, 0)
        logs = deviation * normal - deviation**2 / 2
        for sign in SIGNS:
            values = gamma(logs, sign) if gate else logs.exp()
            mean = (share * values).sum()
            variances.append(float((share * (values - mean).square()).sum()))
    return variances
