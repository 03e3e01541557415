"""Importance ratios r = pi / pi_old of tokens and of whole completions."""

from collections.abc import Callable
from dataclasses import dataclass

from core.losses.batch import Rollout
from core.losses.masked import masked_mean
from core.shapes import B1, BT, BT1


def token_ratio(r: Rollout) -> BT:
    """r_{i,t} = pi(o_{i,t}) / pi_old(o_{i,t}); arXiv 2402.03300 eq. 3."""
    return r.log_ratio.exp()


def sequence_ratio(r: Rollout) -> B1:
    """s_i = (pi(o_i) / pi_old(o_i)) ** (1 / |o_i|), the geometric mean; arXiv 2507.18071 eq. 7."""
    return masked_mean(r.log_ratio, r.mask).unsqueeze(-1).exp()


def completion_ratio(r: Rollout) -> B1:
    """pi(o_i) / pi_old(o_i), the product over its tokens; arXiv 2402.14740."""
    return (r.log_ratio * r.mask).sum(-1, keepdim=True).exp()


def sequence_token_ratio(r: Rollout) -> BT:
    """s_{i,t} = sg(s_i) pi_t / sg(pi_t), for advantages of tokens; arXiv 2507.18071 (GSPO-token).

    Its value is s_i; the gradient of a token stays its own.
    """
    return sequence_ratio(r).detach() * (r.logps - r.logps.detach()).exp()


@dataclass(frozen=True, kw_only=True)
class Level:
    """A row of `RATIOS`: of what a ratio is taken, and whether a completion has a single one."""

    ratio: Callable[[Rollout], BT1]
    doc: str
    per_completion: bool = False


RATIOS = {
    "token": Level(ratio=token_ratio, doc="one of each token"),
    "sequence": Level(ratio=sequence_ratio, doc="one of each completion", per_completion=True),
    "sequence_token": Level(
        ratio=sequence_token_ratio,
        doc="that of its completion for each token, with the token's own gradient",
    ),
    "completion": Level(
        ratio=completion_ratio,
        doc="the product over the tokens of each completion",
        per_completion=True,
    ),
}
