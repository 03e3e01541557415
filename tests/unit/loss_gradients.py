"""Losses and gradients by log-probabilities, which the tests of the table of losses share."""

from dataclasses import replace

import torch

from core.losses.aggregate import Scale
from core.losses.policy import policy_loss

WHOLE = {"importance_sampling_level": "sequence"}


def exact(values):
    return torch.tensor(values, dtype=torch.float64)


def scale(tokens=5, **more):
    return Scale(rollout_tokens=torch.tensor(tokens), max_length=12, **more)


def loss_and_gradient(r, c, where=None):
    leaf = r.logps.detach().clone().requires_grad_()
    loss = policy_loss(replace(r, logps=leaf), c, where or scale(int(r.mask.sum()))).loss
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]
