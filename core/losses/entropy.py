"""Entropy in a policy loss: the selection of tokens by entropy, and the entropy bonus."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from core.losses.batch import Rollout
from core.option import choice, option
from core.shapes import BT, Mask


def most_uncertain(entropy: BT, all_entropies: Tensor, share: float) -> Mask:
    """Return a mask (B, T) of the `share` of tokens with the highest entropy.

    arXiv 2506.01939 eq. 6. A token is selected if its entropy is at least the quantile 1 - share of
    `all_entropies`. If those contain NaN, no token is selected.
    """
    return entropy >= all_entropies.quantile(1 - share)


def least_uncertain(entropy: BT, all_entropies: Tensor, share: float) -> Mask:
    """Return a mask (B, T) of the tokens with an entropy of at most the quantile `share` of all."""
    return entropy <= all_entropies.quantile(share)


@dataclass(frozen=True)
class End:
    """A row of `ENDS`: which tokens are selected by their entropies in a micro-batch."""

    select: Callable[[BT, Tensor, float], Mask]
    doc: str


ENDS = {
    "most": End(most_uncertain, "the most uncertain ones, arXiv 2506.01939"),
    "least": End(least_uncertain, "the least uncertain ones"),
}


def all_tokens(r: Rollout) -> Mask:
    """Return the mask of all trained tokens."""
    return r.mask


def selected_tokens(r: Rollout) -> Mask:
    """Return the mask of the trained tokens that are selected by their entropy."""
    return r.kept_mask


@dataclass(frozen=True)
class Normalizer:
    """A row of `NORMALIZERS`: the mask that an aggregate gets, and whether it leaves tokens out."""

    counts: Callable[[Rollout], Mask]
    doc: str
    only_selected: bool = False


NORMALIZERS = {
    "all": Normalizer(all_tokens, "all tokens, as TRL does"),
    "kept": Normalizer(
        selected_tokens,
        "those that are kept, arXiv 2506.01939 eq. 6, to which a KL is then confined too",
        True,
    ),
}


@dataclass
class EntropyConfig:
    """Settings of entropy in a loss; the config of a trainer inherits them.

    `top_entropy_tokens` is not a setting of TRL.
    """

    STEERING: ClassVar[tuple[str, ...]] = (
        "entropy_coef_min",
        "entropy_coef_max",
        "entropy_coef_delta",
        "entropy_target",
    )
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "entropy_coef_delta": 0.0,
        "entropy_target": 0.0,
    }

    top_entropy_quantile: float = option(
        1.0, "Train on this share of tokens, by entropy; see `top_entropy_tokens`."
    )
    top_entropy_tokens: str = choice("most", ENDS, "Tokens that `top_entropy_quantile` keeps")
    entropy_coef: float = option(0.0, "Weight of the entropy bonus; adaptive, the first one.")
    use_adaptive_entropy: bool = option(False, "Steer the entropy bonus to a target.")
    entropy_coef_min: float = option(0.0, "Least adaptive weight.")
    entropy_coef_max: float = option(1.0, "Greatest adaptive weight.")
    entropy_coef_delta: float = option(0.005, "Step of the adaptive weight.")
    entropy_target: float = option(
        0.2, "Entropy in nats a token up to which the adaptive weight grows, and acts."
    )

    @property
    def chooses_tokens(self) -> bool:
        """True if some tokens are left out of the loss by their entropy."""
        return self.top_entropy_quantile < 1

    @property
    def rewards_entropy(self) -> bool:
        """True if the entropy bonus can be non-zero at some step."""
        return self.entropy_coef != 0 or self.use_adaptive_entropy


def acting_coefficient(coefficient: float, entropy: float, c: EntropyConfig) -> float:
    """Return the weight of the entropy bonus in the next step; arXiv 2505.22312.

    This is `coefficient`, or 0 if the weight is adaptive and `entropy`, that of the last step, is
    above the target.
    """
    return 0.0 if c.use_adaptive_entropy and entropy > c.entropy_target else coefficient


def next_coefficient(coefficient: float, entropy: float, c: EntropyConfig) -> float:
    """Return the adaptive weight after a step with this mean entropy; arXiv 2505.22312.

    min(c + delta, max) if the entropy is at most the target, else max(c - delta, min). A weight
    that is not adaptive is returned unchanged.
    """
    if not c.use_adaptive_entropy:
        return coefficient
    if entropy <= c.entropy_target:
        return min(coefficient + c.entropy_coef_delta, c.entropy_coef_max)
    return max(coefficient - c.entropy_coef_delta, c.entropy_coef_min)
