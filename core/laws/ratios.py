"""Ratios of tokens against ratios of whole answers: which tokens a gradient moves, and how far."""

from dataclasses import replace

import torch

from core.laws.gradients import BATCHES, METHODS, batch, batches, gradient, unclipped
from core.losses.batch import Rollout
from core.losses.masked import masked_mean
from core.losses.ratio import RATIOS

DRIFT = 0.3  # the deviation of log ratios where the policy has moved
CLIP = 0.1  # wide enough that some answers stay within it at that drift, and others do not


def weight_variance(method: str) -> list[float]:
    """The mean variance of the weights of an answer's tokens, off policy, without a clip."""
    return [_variance(r, gradient(r, unclipped(method))[1]) for r in batches(DRIFT)]


def _variance(r: Rollout, by_token: torch.Tensor) -> float:
    rows = zip(by_token, r.mask.bool(), strict=True)
    return float(torch.stack([row[kept].var() for row, kept in rows]).mean())


def idle_tokens_moved(method: str) -> list[float]:
    """The share of tokens with advantage 0 that have a gradient, off policy, without a clip.

    Every other token has advantage 0. A method with one ratio for an answer is given the mean.
    """
    found: list[float] = []
    for r in batches(DRIFT):
        trained = torch.arange(r.mask.size(1)) % 2 == 0
        by_token = (r.advantages * trained).expand_as(r.mask)
        if RATIOS[METHODS[method].importance_sampling_level].per_completion:
            by_token = masked_mean(by_token, r.mask).unsqueeze(1)
        moved = gradient(replace(r, advantages=by_token), unclipped(method))[1] != 0
        found.append(float(moved[:, ~trained][r.mask.bool()[:, ~trained]].double().mean()))
    return found


def clipped_in_part(method: str) -> list[float]:
    """How many answers of a batch have tokens that the clip stops and tokens that it does not.

    The clip is `CLIP` wide on both sides, whatever the method's own is.
    """
    return [float(sum(0 < share < 1 for share in shares)) for shares in clipped_shares(method)]


def clipped_shares(method: str) -> list[list[float]]:
    """The share of each answer's tokens without a gradient."""
    c = replace(METHODS[method], epsilon=CLIP, epsilon_high=CLIP)
    found: list[list[float]] = []
    for r in batches(DRIFT):
        stopped = (gradient(r, c)[1] == 0).double()
        found.append(((stopped * r.mask).sum(1) / r.mask.sum(1)).tolist())
    return found


def objective_sizes(method: str) -> list[float]:
    """|objective| of each answer alone, off policy, without a clip."""
    answers = [one for r in batches(DRIFT) for one in _alone(r)]
    return [float(gradient(one, unclipped(method))[0].abs()) for one in answers]


def outlier_effects(method: str) -> list[float]:
    """How much the loss of each answer alone changes when its greatest log ratio rises by 1.

    As a share of the loss, off policy, without a clip.
    """
    found: list[float] = []
    for r in batches(DRIFT):
        for one in _alone(r):
            greatest = one.log_ratio.detach().masked_fill(one.mask == 0, -torch.inf).argmax()
            raised = one.logps.detach().clone()
            raised[0, greatest] += 1.0
            before = gradient(one, unclipped(method))[0]
            after = gradient(replace(one, logps=raised.requires_grad_()), unclipped(method))[0]
            found.append(float((after / before - 1).abs()))
    return found


def _alone(r: Rollout) -> list[Rollout]:
    """Each answer of a batch as a batch of its own."""
    rows = (slice(place, place + 1) for place in range(len(r.mask)))
    return [
        replace(
            r,
            logps=r.logps[row].detach().requires_grad_(),
            old_logps=r.old_logps[row],
            advantages=r.advantages[row],
            mask=r.mask[row],
        )
        for row in rows
    ]


def gradient_quotients(one: str, other: str, length: int) -> list[float]:
    """One method's gradient over another's at the first token of answers of a length.

    Off policy, without a clip.
    """
    found = [batch(DRIFT, seed, (length,) * 4) for seed in range(BATCHES)]
    both = [(gradient(r, unclipped(one))[1], gradient(r, unclipped(other))[1]) for r in found]
    return [value for a, b in both for value in (a / b)[:, 0].tolist()]


def longest_shares(method: str) -> list[float]:
    """The longest answer's share of all tokens' weights, at ratio 1 and advantages of one size."""
    found: list[float] = []
    for r in batches(0.0):
        by_answer = gradient(replace(r, advantages=r.advantages.sign()), METHODS[method])[1]
        sizes = by_answer.abs().sum(1)
        found.append(float(sizes[r.mask.sum(1).argmax()] / sizes.sum()))
    return found
