"""Laws of advantages: each estimator beside its equation in plain numbers, absent rewards too."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import isnan, nan
from statistics import fmean, pstdev, stdev

import torch

from core.losses.advantages import AGGREGATIONS, SCALES
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored

WEIGHTS = (0.5, 2.0)
ADDED = 1e-4  # to every deviation, as TRL does
KL_COEF = 0.3
# Rewards of two functions for each of twelve completions, NaN where a function did not apply.
REWARDS = (
    *((1.0, 0.5), (0.0, -0.5), (nan, 0.2), (nan, nan), (0.5, 0.25), (0.5, 0.25)),
    *((-1.0, 0.2), (0.25, nan), (nan, nan), (1e-4, 0.0), (3e-4, 0.0), (0.0, 1e-4)),
)  # fmt: skip
GROUPS = (1, 2, 3, 6, 12)  # completions per prompt
ROLLOUTS = (*((REWARDS, group) for group in GROUPS), (REWARDS[:1], 1), (REWARDS[:2], 2))
Numbers = list[float]
Rewards = Sequence[Sequence[float]]


def present(values: Sequence[float]) -> Numbers:
    """Return the numbers that are not NaN."""
    return [value for value in values if not isnan(value)]


def sample_deviation(values: Sequence[float], count: int) -> float:
    """Return the deviation with divisor n - 1 of `count` values without NaN; 0 for one value."""
    numbers = present(values)
    return 0.0 if count == 1 else stdev(numbers) if len(numbers) > 1 else nan


def totals(rewards: Rewards, weights: Sequence[float] = WEIGHTS) -> Numbers:
    """Return the weighted sum of each completion's rewards, NaN if it has none."""
    sums = [present([w * x for w, x in zip(weights, row, strict=True)]) for row in rewards]
    return [sum(terms) if terms else nan for terms in sums]


def groups_of(values: Numbers, group: int) -> list[Numbers]:
    """Return the values of each group."""
    return [values[start : start + group] for start in range(0, len(values), group)]


def subtract_mean(values: Numbers) -> Numbers:
    """Return the values minus the mean of those that are not NaN."""
    numbers = present(values)
    return [value - fmean(numbers) if numbers else nan for value in values]


def against_others(values: Numbers) -> Numbers:
    """Return each value minus the mean of the others."""
    complements = [present([*values[:i], *values[i + 1 :]]) for i in range(len(values))]
    return [
        x - fmean(complement) if complement else nan
        for x, complement in zip(values, complements, strict=True)
    ]


def normalized_advantages(
    values: Numbers, group: int, scale: str, baseline: Callable[[Numbers], Numbers] = subtract_mean
) -> Numbers:
    """Return (x - baseline) / (deviation + 1e-4), the deviation as the scale says."""
    grouped = groups_of(values, group)
    deviations = [baseline(members) for members in grouped]
    flat = [x for members in deviations for x in members]
    stated: Mapping[str, list[float]] = {
        "group": [sample_deviation(members, group) for members in grouped],
        "population": [
            pstdev(present(members)) if present(members) else nan for members in grouped
        ],
        "batch": [sample_deviation(values, len(values))] * len(grouped),
        "centred_batch": [sample_deviation(flat, len(values))] * len(grouped),
        "none": [1 - ADDED] * len(grouped),
    }
    divisors = [deviation + ADDED for deviation in stated[scale]]
    return [x / d for members, d in zip(deviations, divisors, strict=True) for x in members]


def scored_apart(rewards: Rewards, group: int) -> Numbers:
    """Return the weighted sum of rewards, each divided by its deviation in the group."""
    columns = [
        normalized_advantages([row[f] for row in rewards], group, "group")
        for f in range(len(WEIGHTS))
    ]
    unscored = [not present(row) for row in rewards]
    sums = totals(list(zip(*columns, strict=True)))
    return [nan if none else 0.0 if isnan(x) else x for none, x in zip(unscored, sums, strict=True)]


STATED: Mapping[str, Callable[[Rewards, int, str], Numbers]] = {
    "sum_then_normalize": lambda r, group, scale: normalized_advantages(totals(r), group, scale),
    "normalize_then_sum": lambda r, group, _: normalized_advantages(
        scored_apart(r, group), len(r), "batch"
    ),
    "normalize_then_only_sum": lambda r, group, _: scored_apart(r, group),
}


def tensors(rewards: Rewards, group: int, scale: str = "none") -> tuple[Scored, AdvantageSettings]:
    """Return rewards and settings as estimators take them, with a KL for each token."""
    size = (len(rewards), 3)
    kl = torch.arange(size[0] * 3, dtype=torch.float64).view(size) / 50 - 0.2
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    values = torch.tensor(rewards, dtype=torch.float64)
    weighing = AdvantageSettings(
        weights=weights, scale=scale, aggregation="sum_then_normalize", kl_coef=KL_COEF
    )
    return Scored(rewards=values, group=group, length=3, kl=kl, values=1 - kl), weighing


def error(values: torch.Tensor, stated: Sequence[float]) -> float:
    """Return the largest |value - stated|; a stated NaN counts as 0."""
    expected = [0.0 if isnan(x) else x for x in stated]
    return max(abs(a - b) for a, b in zip(values.flatten().tolist(), expected, strict=True))


def aggregation_errors() -> Numbers:
    """Return the error of each aggregation with each scale, for each of `ROLLOUTS`."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    return [
        error(
            AGGREGATIONS[name]
            .combine(tensors(rewards, group)[0].rewards, weights, group, scale)
            .values,
            STATED[name](rewards, group, scale),
        )
        for name, scale, (rewards, group) in product(AGGREGATIONS, SCALES, ROLLOUTS)
    ]


def with_kl(rewards: Rewards) -> Numbers:
    """Return the total reward of each completion minus its weighted KL."""
    kl = tensors(rewards, 1)[0].kl
    sums = [] if kl is None else kl.sum(1).tolist()
    return [x - KL_COEF * y for x, y in zip(totals(rewards), sums, strict=True)]


def first_best(values: Numbers) -> Numbers:
    """Return 1 for the first of the greatest numbers, else 0; NaN is the least."""
    numbers = present(values)
    best = values.index(max(numbers)) if numbers else -1
    return [float(i == best) for i in range(len(values))]


def of_groups(transform: Callable[[Numbers], Numbers], values: Numbers, group: int) -> Numbers:
    """Return the values of all groups, each transformed."""
    return [x for members in groups_of(values, group) for x in transform(members)]


def value_gaps(rewards: Rewards) -> Numbers:
    """Return the total reward of each completion minus the value of its prompt."""
    values = tensors(rewards, 1)[0].values
    column = [] if values is None else values[:, 0].tolist()
    return [x - v for x, v in zip(totals(rewards), column, strict=True)]


OF_COMPLETIONS: Mapping[str, Callable[[Rewards, int], Numbers]] = {
    "group": lambda r, group: normalized_advantages(totals(r), group, "none"),
    "correct": lambda r, _: [float(x > 0) for x in totals(r)],
    "leave_one_out": lambda r, group: of_groups(against_others, with_kl(r), group),
    "best": lambda r, group: of_groups(first_best, with_kl(r), group),
    "value": lambda r, _: value_gaps(r),
}


def estimator_errors() -> Numbers:
    """Return the error of each estimator of completions, for each of `ROLLOUTS`."""
    return [
        error(ESTIMATORS[name].advantages(*tensors(rewards, group)), stated(rewards, group))
        for (name, stated), (rewards, group) in product(OF_COMPLETIONS.items(), ROLLOUTS)
    ]


def process_errors() -> Numbers:
    """Return the error of advantages of steps: the sum over steps that end at or behind a token."""
    steps = ((1.0, 0.5, nan), (0.0, nan, nan), (0.2, 0.9, 1e-3), (nan, nan, nan))
    ends = ((0, 2, 0), (3, 0, 0), (1, 2, 3), (0, 0, 0))
    weights = torch.ones(1, dtype=torch.float64)
    errors: Numbers = []
    for group in (2, 4):
        pooled = normalized_advantages([x for row in steps for x in row], 3 * group, "group")
        scores = groups_of(pooled, 3)
        stated = [
            sum(present([x for x, end in zip(row, places, strict=True) if end >= t]))
            for row, places in zip(scores, ends, strict=True)
            for t in range(4)
        ]
        scored = Scored(
            rewards=torch.zeros(4, 1),
            group=group,
            length=4,
            steps=torch.tensor(steps, dtype=torch.float64),
            ends=torch.tensor(ends),
        )
        settings = AdvantageSettings(weights=weights, scale="group", aggregation="")
        errors.append(error(ESTIMATORS["process"].advantages(scored, settings), stated))
    return errors
