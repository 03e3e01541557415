"""Averaged weights of SGD on quadratic losses, arXiv 2508.00180, by the averages of the trainers.

The loss is h/2 |theta|^2 with curvature h = 1 in 50 dimensions. Training starts at 3 in each of
them, and each coordinate of a gradient has normal noise of standard deviation 5. Time is h times
the learning rate times the steps. The trainings of 100 seeds are simulated together.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import torch
from torch import Tensor, nn
from transformers import TrainerControl, TrainerState, TrainingArguments

from core.configs.weight_schedule import BEMASchedule
from core.shards.bema import BEMACallback
from core.shards.weight_average import WeightAverage

SEEDS, SIZE = 100, 50
START, NOISE = 3.0, 5.0
RATE = 1e-3  # of the simulations with the default schedule
ENDS = 8.0  # time at which they end
LARGE_RATE = 1e-2  # of the simulations of the theory, which last longer
STEPS = 20  # of the exact laws


def start_weights() -> Tensor:
    """Return the weights of each seed before training (`SEEDS`, `SIZE`)."""
    return torch.full((SEEDS, SIZE), START, dtype=torch.float64)


def descend(rate: float, time: float, block: int) -> Iterator[tuple[int, Tensor]]:
    """Yield the number of each step of SGD, and the weights after it (`SEEDS`, `SIZE`)."""
    weights, draw = start_weights(), torch.Generator().manual_seed(block)
    for step in range(1, round(time / rate) + 1):
        noise = torch.randn(weights.shape, generator=draw, dtype=torch.float64)
        weights.mul_(1 - rate).sub_(noise, alpha=rate * NOISE)
        yield step, weights


@cache
def losses(block: int) -> Mapping[str, Tensor]:
    """Return the losses of a block of seeds after each step (steps, `SEEDS`), without noise.

    They are those of the weights ("live"), and of their averages with the default powers and an
    update at every step ("ema" and "bema").
    """
    schedule, average = BEMASchedule(update_freq=1), WeightAverage.of(start_weights())
    curves: Mapping[str, list[Tensor]] = {"live": [], "ema": [], "bema": []}
    for step, weights in descend(RATE, ENDS, block):
        ema_weight, bias_weight = schedule.ema_weight(step), schedule.bias_weight(step)
        average.update(weights, ema_weight=ema_weight, bias_weight=bias_weight)
        sides = (weights, average.ema, average.bema)
        for curve, side in zip(curves.values(), sides, strict=True):
            curve.append(side.square().sum(1) / 2)
    return {name: torch.stack(curve) for name, curve in curves.items()}


def loss_curve(weights: str, seed: int) -> Tensor:
    """Return the losses of the weights "live", "ema" or "bema" of a seed after each step."""
    block, place = divmod(seed, SEEDS)
    return losses(block)[weights][:, place]


def loss(weights: str, *, time: float, seed: int) -> float:
    """Return the loss of the weights "live", "ema" or "bema" at a time."""
    return loss_curve(weights, seed)[round(time / RATE) - 1].item()


def fluctuation(weights: str, *, seed: int) -> float:
    """Return the variance over the last quarter of the training of the distance to the optimum."""
    curve = loss_curve(weights, seed)
    return (2 * curve[-len(curve) // 4 :]).sqrt().var().item()


@cache
def estimates(time: float, block: int) -> tuple[Tensor, Tensor]:
    """Return the squared distances to the optimum (`SEEDS`,) of two estimates of it.

    The first is the mean of the weights before training and after each step. The second adds the
    displacement over time, (theta_T - theta_0) / (h lr T), as the maximum-likelihood estimate of an
    isotropic Ornstein-Uhlenbeck process does.
    """
    average = WeightAverage.of(start_weights())
    for step, weights in descend(LARGE_RATE, time, block):
        over_time = 1 / (LARGE_RATE * step)
        average.update(weights, ema_weight=1 / (1 + step), bias_weight=over_time)
    return average.ema.square().sum(1), average.bema.square().sum(1)


def squared_distance(*, displaced: bool, time: float, seed: int) -> float:
    """Return the squared distance to the optimum of an estimate, see `estimates`."""
    block, place = divmod(seed, SEEDS)
    return estimates(time, block)[displaced][place].item()


def trained(callback: BEMACallback | None) -> Tensor:
    """Return the weights of a linear layer after each of `STEPS` steps of SGD (`STEPS`, 4)."""
    layer, state, control = nn.Linear(4, 1, bias=False).double(), TrainerState(), TrainerControl()
    args = TrainingArguments(use_cpu=True, report_to="none")
    with torch.no_grad():
        layer.weight.fill_(START)
    draw = torch.Generator().manual_seed(0)
    if callback is not None:
        callback.on_train_begin(args, state, control, model=layer)
    path: list[Tensor] = []
    for _ in range(STEPS):
        inputs = torch.randn(8, 4, generator=draw, dtype=torch.float64)
        (gradient,) = torch.autograd.grad(layer(inputs).square().mean(), layer.weight)
        with torch.no_grad():
            layer.weight -= 0.1 * gradient
        state.global_step += 1
        if callback is not None:
            callback.on_step_end(args, state, control, model=layer)
        path.append(layer.weight.detach().flatten().clone())
    return torch.stack(path)


def trained_weights(*, averaged: bool) -> list[float]:
    """Return the weights after each step of a training, with or without a callback."""
    callback = BEMACallback(update_freq=1) if averaged else None
    return trained(callback).flatten().tolist()


def correction(*, bias_power: float) -> list[float]:
    """Return BEMA - EMA of each weight of a layer at the end of a training."""
    callback = BEMACallback(update_freq=1, bias_power=bias_power)
    trained(callback)
    (average,) = callback.averages.values()
    return (average.bema - average.ema).flatten().tolist()
