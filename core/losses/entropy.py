"""Entropy in a policy loss: the tokens that are chosen by it, and a bonus for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from core.losses.batch import Rollout
from core.option import choice, option
from core.shapes import BT, Mask


def most_uncertain(entropy: BT, every: Tensor, share: float) -> Mask:
    """H >= its quantile 1 - share; arXiv 2506.01939 eq. 6. NaN in `every` keeps nothing."""
    return entropy >= every.quantile(1 - share)


def least_uncertain(entropy: BT, every: Tensor, share: float) -> Mask:
    """H <= its quantile `share`."""
    return entropy <= every.quantile(share)


@dataclass(frozen=True)
class End:
    """A row of `ENDS`: which tokens are kept, by their entropies among all of a micro-batch."""

    kept: Callable[[BT, Tensor, float], Mask]
    doc: str


ENDS = {
    "most": End(most_uncertain, "the most uncertain ones, arXiv 2506.01939"),
    "least": End(least_uncertain, "the least uncertain ones"),
}


def trained(r: Rollout) -> Mask:
    """1 on all trained tokens."""
    return r.mask


def kept(r: Rollout) -> Mask:
    """1 on those that are kept."""
    return r.kept_mask


@dataclass(frozen=True)
class Normalizer:
    """A row of `NORMALIZERS`: the tokens that an aggregate sees, and whether they are fewer."""

    counts: Callable[[Rollout], Mask]
    doc: str
    only_kept: bool = False


NORMALIZERS = {
    "all": Normalizer(trained, "all tokens, as TRL does"),
    "kept": Normalizer(
        kept,
        "those that are kept, arXiv 2506.01939 eq. 6, to which a KL is then confined too",
        True,
    ),
}


@dataclass
class EntropyConfig:
    """The settings of what entropy does in a loss; the config of a trainer inherits them.

    `top_entropy_tokens` is not TRL's.
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
        """Whether some tokens are left out by their entropy."""
        return self.top_entropy_quantile < 1

    @property
    def rewards_entropy(self) -> bool:
        """Whether there is a bonus, at least now and then."""
        return self.entropy_coef != 0 or self.use_adaptive_entropy


def acting_coefficient(coefficient: float, entropy: float, c: EntropyConfig) -> float:
    """alpha = c where the entropy of the last step is at most the target, else 0; or plain c.

    arXiv 2505.22312.
    """
    return 0.0 if c.use_adaptive_entropy and entropy > c.entropy_target else coefficient


def next_coefficient(coefficient: float, entropy: float, c: EntropyConfig) -> float:
    """min(c + delta, most) where the entropy is at most the target, else max(c - delta, least).

    arXiv 2505.22312; as it is where it is not adaptive.
    """
    if not c.use_adaptive_entropy:
        return coefficient
    if entropy <= c.entropy_target:
        return min(coefficient + c.entropy_coef_delta, c.entropy_coef_max)
    return max(coefficient - c.entropy_coef_delta, c.entropy_coef_min)
