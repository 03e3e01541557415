"""Rewards of pairs of texts by a reward model, and the quantities that follow from them."""

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from torch import Tensor, nn

from core.bounded_templates import Tokenizer
from core.data.chatml import to_chatml
from core.data.conversations import Row
from core.data.pair_columns import GRADE
from core.data.pairs import ANSWERS
from core.data.scored_pairs import encode_whole
from core.errors import NotMeasured
from core.forward.batches import pad_rows
from core.forward.head_scores import end_scores
from core.forward.quantities import Quantity, ratio_of_sums
from core.preference.pair_quantities import in_order

BATCH = 64  # texts that are scored together
RESAMPLES = 1000
MODELS = ("start", "trained")
MEAN, ONE, BIMODALITY = "rewards/mean", "rewards/one_completion", "rewards/bimodality"
DATASET: Any = Dataset  # Any: its methods are half typed


class RewardedPairs(NamedTuple):
    """Rewards (N,) of both texts of pairs, and how clear the preference is; None if unknown."""

    chosen: Tensor
    rejected: Tensor
    grade: Tensor | None

    @property
    def gap(self) -> Tensor:
        """Reward of the chosen text minus that of the rejected one (N,)."""
        return self.chosen - self.rejected


def pair_rewards(model: nn.Module, tokenizer: Tokenizer, rows: Sequence[Row]) -> Tensor:
    """Return the rewards (2, N) of the chosen and the rejected texts of N rows."""
    chats = list(to_chatml(DATASET.from_list([*rows])).with_format(None))
    texts = [encode_whole(row, name, tokenizer) for name in ANSWERS for row in chats]
    return text_rewards(model, tokenizer, texts).reshape(2, -1)


@torch.no_grad()
def text_rewards(model: nn.Module, tokenizer: Tokenizer, texts: Sequence[Sequence[int]]) -> Tensor:
    """Return the rewards (N,) of N texts of token ids."""
    padding, device = tokenizer.pad_token_id, next(model.parameters()).device
    rewards = []
    for first in range(0, len(texts), BATCH):
        ids, mask = pad_rows(texts[first : first + BATCH], padding)
        rewards.append(end_scores(model, ids.to(device), mask.to(device))[:, 0].cpu())
    return torch.cat(rewards)


def reward_columns(start: Tensor, trained: Tensor, rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return rewards (2, N) of the start and of the trained model as columns by name.

    Rewards are in single precision. The grades of the rows are added if all rows have one, a whole
    number of 32 bits.
    """
    columns = {
        f"{model}_{answer}": values.float().tolist()
        for model, rewards in zip(MODELS, (start, trained), strict=True)
        for answer, values in zip(ANSWERS, rewards, strict=True)
    }
    grades: list[Any] = [row.get(GRADE) for row in rows]  # Any: whatever the data has
    is_graded = all(type(grade) is int and abs(grade) < 2**31 for grade in grades)
    return columns | ({GRADE: grades} if is_graded else {})


def has_rewards(columns: Mapping[str, Sequence[float]]) -> bool:
    """Return whether columns of pairs are those of `reward_columns`."""
    return f"{MODELS[1]}_{ANSWERS[0]}" in columns


def rewarded_pairs(
    columns: Mapping[str, Sequence[float]], *, at_start: bool = False
) -> RewardedPairs:
    """Return the pairs of `reward_columns`, with the rewards of the trained model or its start."""
    model = MODELS[0] if at_start else MODELS[1]
    values = {name: torch.tensor(column, dtype=torch.float64) for name, column in columns.items()}
    chosen, rejected = (values[f"{model}_{answer}"] for answer in ANSWERS)
    return RewardedPairs(chosen, rejected, values.get(GRADE))


def every(pairs: RewardedPairs) -> Tensor:
    """Return a mask (N,) of all pairs."""
    return torch.ones_like(pairs.chosen)


def clear(pairs: RewardedPairs) -> Tensor:
    """Return a mask (N,) of the pairs of the highest grade."""
    grade = known_grade(pairs)
    return (grade == grade.max()).double()


def close(pairs: RewardedPairs) -> Tensor:
    """Return a mask (N,) of the pairs of the lowest grade."""
    grade = known_grade(pairs)
    return (grade == grade.min()).double()


def known_grade(pairs: RewardedPairs) -> Tensor:
    """Return the grades (N,).

    Raises:
        NotMeasured: the pairs have none.
    """
    if pairs.grade is None:
        raise NotMeasured(f"the pairs have no grades; add the column {GRADE} of whole numbers")
    return pairs.grade


class MeanOfPairs(NamedTuple):
    """A quantity that is the mean of `values` (N,) over the pairs of a mask (N,)."""

    values: Callable[[RewardedPairs], Tensor]
    of: Callable[[RewardedPairs], Tensor]


def accuracy(pairs: RewardedPairs) -> Tensor:
    """Return 1 for pairs in order, 1/2 for equal rewards, 0 for pairs in the wrong order (N,)."""
    return in_order(pairs.gap)


MEANS: Mapping[str, MeanOfPairs] = {
    "pairs/accuracy": MeanOfPairs(accuracy, every),
    "pairs_clear/accuracy": MeanOfPairs(accuracy, clear),
    "pairs_close/accuracy": MeanOfPairs(accuracy, close),
    "pairs/margin": MeanOfPairs(lambda pairs: pairs.gap, every),
    "pairs_clear/margin": MeanOfPairs(lambda pairs: pairs.gap, clear),
    MEAN: MeanOfPairs(lambda pairs: (pairs.chosen + pairs.rejected) / 2, every),
}
REWARD_QUANTITIES = (*MEANS, BIMODALITY, ONE)


def reward_quantity(name: str, pairs: RewardedPairs) -> Quantity:
    """Return a quantity of `REWARD_QUANTITIES`, with its interval over the sampling of pairs.

    `rewards/one_completion` is the reward of the chosen text of the first pair.

    Raises:
        NotMeasured: the quantity is of a grade, and the pairs have none.
    """
    if name == ONE:
        reward = pairs.chosen[0].item()
        return Quantity(reward, reward, reward, 1)
    if name == BIMODALITY:
        return ashman_distance(pairs.chosen, pairs.rejected)
    values, weights = MEANS[name].values(pairs), MEANS[name].of(pairs)
    return ratio_of_sums((values * weights).split(1), weights.split(1))


def ashman_distance(chosen: Tensor, rejected: Tensor) -> Quantity:
    """Return Ashman's D of the rewards (N,) of chosen and of rejected texts.

    D = |m+ - m-| / sqrt((s+^2 + s-^2) / 2) with means m and deviations s; two normal clusters are
    apart from D = 2 on. The interval is the percentile bootstrap over pairs, without resamples of
    one pair alone.

    Raises:
        NotMeasured: there are fewer than two pairs.
    """
    if (count := len(chosen)) < 2:
        raise NotMeasured(f"{BIMODALITY}: a deviation needs two pairs or more, there are {count}")

    def distances(places: Tensor) -> Tensor:
        one, other = chosen[places], rejected[places]
        variance = (one.var(-1) + other.var(-1)) / 2
        distance = (one.mean(-1) - other.mean(-1)).abs() / variance.sqrt()
        return torch.where(variance > 0, distance, nan)

    draws = torch.randint(count, (RESAMPLES, count), generator=torch.Generator().manual_seed(0))
    bounds = torch.tensor([0.025, 0.975], dtype=torch.float64)
    low, high = distances(draws).nanquantile(bounds).tolist()
    return Quantity(distances(torch.arange(count)).item(), low, high, count)
