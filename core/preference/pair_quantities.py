"""Quantities of pairs: how a policy orders them, and how far it moved from its start."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.data.pairs import GOLD
from core.errors import NotMeasured
from core.forward.quantities import Quantity, ratio_of_sums
from core.losses.preference import smoothed
from core.losses.unpaired import unpaired_losses
from core.preference.pair_sums import OF_A_MODEL, PairSums

QUANTILE_GAP, OF_GOLD = "quantile_gap", "log_ratio/gold"
LEVELS = torch.arange(1, 20, dtype=torch.float64) / 20  # of quantiles that are compared
RESAMPLES = 1000


class MovedPairs(NamedTuple):
    """Pairs under a policy and its start.

    Attributes:
        policy: The pairs under the policy.
        start: The pairs under its start.
        flipped: 1 for each pair whose labels are flipped, else 0 (N,).
    """

    policy: PairSums
    start: PairSums
    flipped: Tensor

    @property
    def chosen(self) -> Tensor:
        """Log-ratios of the better answers, in nats."""
        return self.policy.chosen - self.start.chosen

    @property
    def rejected(self) -> Tensor:
        """Log-ratios of the worse answers, in nats."""
        return self.policy.rejected - self.start.rejected


def pair_columns(pairs: MovedPairs) -> dict[str, list[float]]:
    """Return pairs as columns of N numbers by name, log-probabilities in single precision."""
    columns = {
        f"{model}_{name}": column.float()
        for model, sums in (("start", pairs.start), ("policy", pairs.policy))
        for name in OF_A_MODEL
        if (column := getattr(sums, name)) is not None
    }
    counts = {
        "chosen_tokens": pairs.start.chosen_tokens,
        "rejected_tokens": pairs.start.rejected_tokens,
        "flipped": pairs.flipped,
    }
    whole = {name: column.int() for name, column in counts.items()}
    return {name: column.tolist() for name, column in (columns | whole).items()}


def moved_pairs(columns: Mapping[str, Sequence[float]], *, at_start: bool = False) -> MovedPairs:
    """Return pairs from the columns that `pair_columns` returns.

    Args:
        columns: Log-probabilities and lengths of N pairs.
        at_start: Whether the policy is the start itself.
    """
    values = {name: torch.tensor(column, dtype=torch.float64) for name, column in columns.items()}
    start, policy = (
        PairSums(
            chosen=values[f"{model}_chosen"],
            rejected=values[f"{model}_rejected"],
            chosen_tokens=values["chosen_tokens"],
            rejected_tokens=values["rejected_tokens"],
            log_weight=values[f"{model}_log_weight"],
            gold=values.get(f"{model}_gold"),
        )
        for model in ("start", "start" if at_start else "policy")
    )
    return MovedPairs(policy, start, flipped=values["flipped"])


def in_order(gaps: Tensor) -> Tensor:
    """Return 1 for positive gaps, a half for 0, and 0 for negative ones."""
    return (gaps.sign() + 1) / 2


def likelihood_gaps(pairs: PairSums) -> Tensor:
    """Return the gap of the mean log-probabilities of a token, in nats."""
    chosen = pairs.chosen / pairs.chosen_tokens.clamp(min=1)
    return chosen - pairs.rejected / pairs.rejected_tokens.clamp(min=1)


def gold_log_ratios(pairs: MovedPairs) -> Tensor:
    """Return the log-ratios (N,) of the gold answers, in nats.

    Raises:
        NotMeasured: the pairs have no gold answers.
    """
    if pairs.policy.gold is None or pairs.start.gold is None:
        raise NotMeasured(f"{OF_GOLD}: the pairs have no gold answers; add the column {GOLD}")
    return pairs.policy.gold - pairs.start.gold


def other_answers(pairs: PairSums) -> Tensor:
    """Return the probability of an answer that is neither of a pair's two."""
    return 1 - pairs.chosen.exp() - pairs.rejected.exp()


def classification_excess(pairs: MovedPairs, shift: float) -> Tensor:
    """Return the loss of classifying both answers of each pair minus DPO's loss of it, in nats.

    Rewards are log-ratios (beta 1); the shift is what a classifier compares them with. The excess
    is positive for any shift, arXiv 2404.04656.
    """
    labels = torch.ones_like(pairs.chosen, dtype=torch.bool)
    chosen = unpaired_losses("bco", pairs.chosen, labels, shift=shift)
    rejected = unpaired_losses("bco", pairs.rejected, ~labels, shift=shift)
    return chosen + rejected - smoothed(pairs.chosen - pairs.rejected, 0.0)


def deviations(values: Tensor) -> Tensor:
    """Return the distances of values (N,) from their mean."""
    return (values - values.mean()).abs()


def mean_reward(pairs: MovedPairs) -> float:
    """Return the mean log-ratio of all answers, of which half are better ones, in nats."""
    return (pairs.chosen.mean().item() + pairs.rejected.mean().item()) / 2


PAIR_QUANTITIES: Mapping[str, Callable[[MovedPairs], Tensor]] = {
    "pair_accuracy": lambda pairs: in_order(pairs.chosen - pairs.rejected),
    "likelihood_accuracy": lambda pairs: in_order(likelihood_gaps(pairs.policy)),
    "pair_margin": lambda pairs: pairs.chosen - pairs.rejected,
    "log_ratio/chosen": lambda pairs: pairs.chosen,
    "log_ratio/rejected": lambda pairs: pairs.rejected,
    OF_GOLD: gold_log_ratios,
    "chosen_fell": lambda pairs: (pairs.chosen < 0).double(),
    "other_answers": lambda pairs: other_answers(pairs.policy),
    "flipped_resisted": lambda pairs: in_order(pairs.chosen - pairs.rejected),
    "start_log_weight": lambda pairs: pairs.start.log_weight,
    "start_log_weight_spread": lambda pairs: deviations(pairs.start.log_weight),
    "excess_loss": lambda pairs: classification_excess(pairs, 0.0),
    "excess_loss/shifted": lambda pairs: classification_excess(pairs, mean_reward(pairs)),
}
OF_FLIPPED = frozenset({"flipped_resisted"})  # means over pairs with flipped labels alone


def pair_quantity(name: str, pairs: MovedPairs) -> Quantity:
    """Return a quantity of pairs, with its interval over the sampling of pairs.

    It is the mean of a row of `PAIR_QUANTITIES`, or `least_quantile_gap`.

    Raises:
        NotMeasured: the quantity is of flipped pairs, and there are none.
    """
    if name == QUANTILE_GAP:
        return least_quantile_gap(pairs.chosen, pairs.rejected)
    values = PAIR_QUANTITIES[name](pairs)
    weights = pairs.flipped if name in OF_FLIPPED else torch.ones_like(values)
    if not weights.any():
        raise NotMeasured(f"{name}: none of {len(values)} pairs is flipped; set flipped_share")
    return ratio_of_sums((values * weights).split(1), weights.split(1))


def least_quantile_gap(chosen: Tensor, rejected: Tensor) -> Quantity:
    """Return the least difference of the same quantile of chosen and rejected log-ratios (N,).

    It is positive if the chosen ones dominate in the first order, arXiv 2406.05882. Quantiles are
    those of 5 to 95 %, the interval is the percentile bootstrap over pairs.
    """

    def least(places: Tensor) -> Tensor:
        one, other = (x[places].quantile(LEVELS, dim=-1) for x in (chosen, rejected))
        return (one - other).min(0).values

    count = len(chosen)
    draws = torch.randint(count, (RESAMPLES, count), generator=torch.Generator().manual_seed(0))
    low, high = least(draws).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return Quantity(least(torch.arange(count)).item(), low, high, count)
