"""Laws that tell ratios of tokens from ratios of whole answers, by the gradients of tokens."""

from dataclasses import replace
from itertools import product

import torch

from core.laws.gradients import BATCHES, METHODS, batch, batches, gradient, without_clip
from core.losses.batch import Rollout
from core.losses.masked import masked_mean
from core.losses.ratio import RATIOS

DRIFT = 0.3  # the deviation of log ratios where the policy has moved
CLIP = 0.1  # wide enough that some answers stay within it at that drift, and others do not


def weight_variance(method: str) -> list[float]:
    """Return the mean variance of the gradients within an answer, per batch, without a clip."""
    return [_variance(r, gradient(r, without_clip(method))[1]) for r in batches(DRIFT)]


def _variance(r: Rollout, by_token: torch.Tensor) -> float:
    rows = zip(by_token, r.mask.bool(), strict=True)
    return float(torch.stack([row[is_token].var() for row, is_token in rows]).mean())


def log_spread(level: str) -> list[float]:
    """Return the spread of log ratios at a level, for independent tokens in answers of 1 to 8.

    All answers whose tokens move by one step up or down are enumerated.
    """
    return [_log_spread(level, length) for length in range(1, 9)]


def _log_spread(level: str, length: int) -> float:
    moved = DRIFT * torch.tensor([*product((-1.0, 1.0), repeat=length)], dtype=torch.float64)
    ones = torch.ones_like(moved)
    r = Rollout(logps=moved - 1, old_logps=-ones, advantages=ones[:, :1], mask=ones)
    return float(RATIOS[level].ratio(r).log().std(correction=0))


def shrunk_spread() -> list[float]:
    """Return the same of tokens, divided by the square root of the answer's length."""
    return [spread / (1 + i) ** 0.5 for i, spread in enumerate(log_spread("token"))]


def idle_tokens_moved(method: str) -> list[float]:
    """Return the share of tokens with advantage 0 that have a gradient, for each batch.

    Every other token has advantage 0. A method with one ratio per answer uses the mean advantage of
    the answer. The policy has moved, and the loss has no clip.
    """
    shares: list[float] = []
    for r in batches(DRIFT):
        trained = torch.arange(r.mask.size(1)) % 2 == 0
        by_token = (r.advantages * trained).expand_as(r.mask)
        if RATIOS[METHODS[method].importance_sampling_level].per_completion:
            by_token = masked_mean(by_token, r.mask).unsqueeze(1)
        has_gradient = gradient(replace(r, advantages=by_token), without_clip(method))[1] != 0
        shares.append(float(has_gradient[:, ~trained][r.mask.bool()[:, ~trained]].double().mean()))
    return shares


def clipped_in_part(method: str) -> list[float]:
    """Count the answers of each batch of which the clip stops some tokens and not others.

    The clip is `CLIP` wide on both sides in place of the method's own.
    """
    return [float(sum(0 < share < 1 for share in shares)) for shares in clipped_shares(method)]


def clipped_shares(method: str) -> list[list[float]]:
    """Return the share of each answer's tokens without a gradient, for each batch."""
    c = replace(METHODS[method], epsilon=CLIP, epsilon_high=CLIP)
    batch_shares: list[list[float]] = []
    for r in batches(DRIFT):
        stopped = (gradient(r, c)[1] == 0).double()
        batch_shares.append(((stopped * r.mask).sum(1) / r.mask.sum(1)).tolist())
    return batch_shares


def objective_sizes(method: str) -> list[float]:
    """Return |objective| of each answer in a batch of its own, off policy, without a clip."""
    answers = [answer for r in batches(DRIFT) for answer in _alone(r)]
    return [float(gradient(answer, without_clip(method))[0].abs()) for answer in answers]


def outlier_effects(method: str) -> list[float]:
    """Return the relative change of each answer's loss when its greatest log ratio rises by 1.

    Each answer is a batch of its own, off policy, without a clip.
    """
    changes: list[float] = []
    for r in batches(DRIFT):
        for answer in _alone(r):
            greatest = answer.log_ratio.detach().masked_fill(answer.mask == 0, -torch.inf).argmax()
            raised = answer.logps.detach().clone()
            raised[0, greatest] += 1.0
            before = gradient(answer, without_clip(method))[0]
            after = gradient(replace(answer, logps=raised.requires_grad_()), without_clip(method))[
                0
            ]
            changes.append(float((after / before - 1).abs()))
    return changes


def _alone(r: Rollout) -> list[Rollout]:
    """Return each answer of a batch as a batch of its own."""
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


def gradient_quotients(method: str, reference: str, length: int) -> list[float]:
    """Return one method's gradient over another's at the first token of answers of a length.

    The policy has moved, and neither loss has a clip.
    """
    rollouts = [batch(DRIFT, seed, (length,) * 4) for seed in range(BATCHES)]
    gradient_pairs = [
        (gradient(r, without_clip(method))[1], gradient(r, without_clip(reference))[1])
        for r in rollouts
    ]
    return [value for a, b in gradient_pairs for value in (a / b)[:, 0].tolist()]


def longest_shares(method: str) -> list[float]:
    """Return the longest answer's share of the sum of |gradient|, at ratio 1 and |A| = 1."""
    shares: list[float] = []
    for r in batches(0.0):
        by_answer = gradient(replace(r, advantages=r.advantages.sign()), METHODS[method])[1]
        sizes = by_answer.abs().sum(1)
        shares.append(float(sizes[r.mask.sum(1).argmax()] / sizes.sum()))
    return shares
