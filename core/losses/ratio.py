"""Importance ratios r = pi / pi_old of tokens and of completions."""

from collections.abc import Callable
from dataclasses import dataclass

from core.losses.batch import Rollout
from core.losses.masked import masked_mean
from core.shapes import B1, BT, BT1


def token_ratio(r: Rollout) -> BT:
    """Return r_{i,t} = pi(o_{i,t}) / pi_old(o_{i,t}); arXiv 2402.03300 eq. 3."""
    return r.log_ratio.exp()


def sequence_ratio(r: Rollout) -> B1:
    """Return s_i = (pi(o_i) / pi_old(o_i)) ** (1 / |o_i|), the geometric mean over tokens.

    arXiv 2507.18071 eq. 7.
    """
    return masked_mean(r.log_ratio, r.mask).unsqueeze(-1).exp()


def completion_ratio(r: Rollout) -> B1:
    """Return pi(o_i) / pi_old(o_i), the product over the tokens; arXiv 2402.14740."""
    return (r.log_ratio * r.mask).sum(-1, keepdim=True).exp()


def sequence_token_ratio(r: Rollout) -> BT:
    """Return s_{i,t} = sg(s_i) pi_t / sg(pi_t), for advantages of tokens.

    Its value is s_i, and its gradient that of the token's own log-probability. arXiv 2507.18071
    (GSPO-token).
    """
    return sequence_ratio(r).detach() * (r.logps - r.logps.detach()).exp()


@dataclass(frozen=True, kw_only=True)
class Level:
    """A row of `RATIOS`: a ratio, and whether it is one number per completion."""

    ratio: Callable[[Rollout], BT1]
    doc: str
    per_completion: bool = False


RATIOS = {
    "token": Level(ratio=token_ratio, doc="one ratio per token"),
    "sequence": Level(
        ratio=sequence_ratio,
        doc="one ratio per completion, the geometric mean over its tokens",
        per_completion=True,
    ),
    "sequence_token": Level(
        ratio=sequence_token_ratio,
        doc="the ratio of the completion, with the gradient of each token's own",
    ),
    "completion": Level(
        ratio=completion_ratio,
        doc="one ratio per completion, the product over its tokens",
        per_completion=True,
    ),
}
