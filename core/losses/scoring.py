"""Losses of scalar rewards of pairs, of labels of steps, and of values of tokens of solutions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from core.losses.divergence_scores import log_sigmoid
from core.shapes import B

Steps = Float[Tensor, "M"]
StepLogits = Float[Tensor, "M L"]  # of L labels
StepLabels = Int[Tensor, "M"]


@dataclass(frozen=True, kw_only=True)
class PairRewards:
    """Rewards (B,) of the answers of B pairs, and the margin (B,) of each pair; None is 0."""

    chosen: B
    rejected: B
    margin: B | None = None

    @property
    def gap(self) -> B:
        """Reward of the chosen answer minus that of the rejected one."""
        return self.chosen - self.rejected


def bradley_terry(r: PairRewards) -> B:
    """Return -log sigma(r+ - r- - m); arXiv 2307.09288 eq. 2, without margin arXiv 2203.02155."""
    return -log_sigmoid(r.gap if r.margin is None else r.gap - r.margin)


def centred(r: PairRewards) -> B:
    """Return (r+ + r-)^2, least where the rewards of a pair sum to 0; arXiv 2312.09244 eq. 2."""
    return (r.chosen + r.rejected).square()


@dataclass(frozen=True)
class PairTerm:
    """A row of `PAIR_TERMS`: a term of the loss of each pair (B,)."""

    loss: Callable[[PairRewards], B]
    doc: str


PAIR_TERMS = {
    "bradley_terry": PairTerm(bradley_terry, "the chosen answer has the higher reward"),
    "centred": PairTerm(centred, "the rewards of a pair sum to 0"),
}


def pair_losses(rewards: PairRewards, weights: Mapping[str, float]) -> B:
    """Return the weighted sum of terms of the loss of each pair.

    Args:
        rewards: Rewards of the pairs, with gradient.
        weights: Weights by the name of a row of `PAIR_TERMS`; at least one.
    """
    first, *others = (weight * PAIR_TERMS[name].loss(rewards) for name, weight in weights.items())
    return sum(others, first)


def step_labels(logits: StepLogits, labels: StepLabels) -> Steps:
    """Return -log softmax(z)[y] of each labelled step; arXiv 2211.14275.

    Args:
        logits: Logits of L labels for each of M steps.
        labels: Index of the right label.
    """
    return nn.functional.cross_entropy(logits, labels, reduction="none")


def token_value(values: Steps, labels: Steps) -> Steps:
    """Return (v - y)^2 of each token, whose label y is that of its solution; arXiv 2110.14168."""
    return (values - labels).square()
