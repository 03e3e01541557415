"""Laws of weights and selections: of tokens, completions and groups, with absent numbers too."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import exp, inf, isnan, nan

import torch
from torch import Tensor

from core.equations.stated import Tokens, formula_error, mean, repeated_rows, rollout
from core.losses.batch import PolicyConfig, Rollout
from core.losses.entropy import ENDS, EntropyConfig
from core.losses.estimators import Scored
from core.losses.sampling import MODES, Correction, sampling_ratio
from core.losses.selection import SELECTIONS
from core.losses.token_weights import WEIGHTS

SAMPLED = (-1.3, nan, -2.1)  # log-probabilities of tokens that an engine reported
LIMITS = ((None, 3.0), (0.5, None), (0.5, 3.0), (None, 0.5), (None, None))
THRESHOLD = 0.1
NUMBERS = (0.3, 2.0, 0.0, 1.1, 0.7, 0.3, 0.9, 1.6, 0.2, 0.5)  # entropies of tokens


def weight_errors() -> list[float]:
    """Return the error of pi_old / pi_engine in each mode, with limits above, below and none."""
    return [_weight_error(mode, *limits) for mode, limits in product(MODES, LIMITS)]


def _weight_error(mode: str, low: float | None, high: float | None) -> float:
    r, tokens = rollout()
    level, bound = mode.split("_")
    sampled = repeated_rows(SAMPLED, len(tokens))
    weights = sampling_ratio(
        r.logps.detach(), sampled, r.mask, Correction(mode=mode, clip_min=low, clip_max=high)
    )
    logps = r.logps.tolist()

    def stated_weight(i: int, t: int) -> float:
        pairs = zip(logps[i][: len(tokens[i])], SAMPLED, strict=False)
        gaps = [0.0 if isnan(engine) else logp - engine for logp, engine in pairs]
        ratio = exp({"token": gaps[t], "sequence": sum(gaps), "geometric": mean(gaps)}[level])
        inside = (low or -inf) <= ratio <= (high or inf)
        if bound == "truncate":
            return min(max(ratio, low or -inf), high or inf)
        return (1.0 if level == "geometric" else ratio) if inside else 0.0

    return formula_error(weights, tokens, stated_weight)


def near_errors() -> list[float]:
    """Return the error of the off-policy mask, with log-probabilities of an engine and without.

    It is 0 where A < 0 and the mean of log(pi_sampler / pi) exceeds the threshold, else 1.
    """
    r, tokens = rollout()
    reported = repeated_rows(SAMPLED, len(tokens))
    return [_near_error(r, tokens, sampled) for sampled in (None, reported)]


def _near_error(r: Rollout, tokens: Sequence[Tokens], sampled: Tensor | None) -> float:
    config = PolicyConfig(off_policy_mask_threshold=THRESHOLD)
    weights = WEIGHTS["near_policy"](replace(r, sampling_logps=sampled), config)
    drifts = (r.old_logps if sampled is None else sampled) - r.logps
    rows = [row[: len(x)] for row, x in zip(drifts.tolist(), tokens, strict=True)]
    means = [mean([0.0 if isnan(gap) else gap for gap in row]) for row in rows]
    signs = r.advantages.flatten().tolist()
    near = [float(a > 0 or drift <= THRESHOLD) for a, drift in zip(signs, means, strict=True)]
    return inf if weights is None else formula_error(weights, tokens, lambda i, _: near[i])


def entropy_errors() -> list[float]:
    """Count the tokens that a share by entropy selects wrongly, at both ends; and the switches.

    A share of 1 leaves nothing out; a bonus acts if its weight is not 0.
    """
    entropies = torch.tensor([NUMBERS], dtype=torch.float64)
    ranked = sorted(NUMBERS)
    errors = [
        float((ENDS["most"].select(entropies, entropies, 0.3) != (entropies >= ranked[-3])).sum()),
        float((ENDS["least"].select(entropies, entropies, 0.3) != (entropies <= ranked[2])).sum()),
    ]
    shares = [EntropyConfig(top_entropy_quantile=q).chooses_tokens for q in (0.2, 0.9, 1.0)]
    bonuses = [EntropyConfig(entropy_coef=c).rewards_entropy for c in (0.0, 0.01, 1.0)]
    return [*errors, float(shares != [True, True, False]), float(bonuses != [False, True, True])]


# Rewards and token counts of four groups of four: the first has equal rewards, the third a single
# one.
SCORES = (0.5, 0.5, 0.5, nan, 1.0, nan, 1.0, 0.0, nan, 0.4, nan, nan, 0.3, 0.4, 0.4, 0.0)
COUNTS = (4, 2, 2, 9, 0, 1, 1, 5, 7, 1, 3, 2, 1, 2, 2, 5)
CHOSEN = {
    "all": None,
    "varied": [4, 5, 6, 7, 12, 13, 14, 15],
    "shortest": [1, 2, 4, 5, 9, 11, 12, 13],
    "efficient": [1, 2, 4, 6, 8, 9, 12, 13],
}


def selection_errors() -> list[float]:
    """Return 0 for each selection that takes the completions worked out by hand, else 1."""
    scored = Scored(
        rewards=torch.tensor(SCORES, dtype=torch.float64).unsqueeze(1),
        group=4,
        length=9,
        tokens=torch.tensor(COUNTS),
    )
    weights = torch.ones(1, dtype=torch.float64)
    chosen = {name: SELECTIONS[name].choose(scored, weights, 2) for name in CHOSEN}
    rows = {
        name: None if selection is None else selection.rows.tolist()
        for name, selection in chosen.items()
    }
    return [float(rows[name] != CHOSEN[name]) for name in CHOSEN]
