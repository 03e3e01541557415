"""Losses of preference pairs beside their equations in plain numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import exp, fsum, inf, log

import torch

from core.equations.advantage_equations import Numbers, error
from core.losses.divergence_scores import DIVERGENCES
from core.losses.pair_scores import Step
from core.losses.pair_weights import ALIGNMENTS
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import PREFERENCES, PreferenceSettings, preference_losses, scores_of

Tokens = Sequence[Sequence[float]]
# Log-probabilities of tokens of answers of several lengths, under policy and reference.
CHOSEN: Tokens = ((-1.0, -0.5, -0.8), (-2.5,), (-0.3, -4.0), (-1.5, -0.2, -0.9, -3.0))
REF_CHOSEN: Tokens = ((-1.2, -0.7, -0.9), (-0.5,), (-2.3, -1.0), (-0.5, -0.4, -1.9, -0.1))
REJECTED: Tokens = ((-0.9, -1.1, -0.6, -0.4), (-2.0, -0.1), (-1.0,), (-0.6, -1.7))
REF_REJECTED: Tokens = ((-1.0, -1.0, -0.7, -0.5), (-0.2, -2.2), (-3.0,), (-1.6, -0.3))
ALIGNMENT = -0.7  # log sum_v p(v)^2 of every token
WINS = ((0.9, 0.6, 0.5, 0.8), (0.2, 0.4, 0.5, 0.1))  # rates of chosen and of rejected answers
CHANCES = (0.5, 0.3, 0.2)  # of the tokens of a vocabulary
WIDTH = 4
ALPHAS = (None, 0.5)


@dataclass
class Settings(PreferenceSettings):
    """Settings of a loss, each with an effect."""

    beta: float = 0.3
    label_smoothing: float = 0.1
    f_alpha_divergence_coef: float = 0.4
    discopop_tau: float = 0.2


@dataclass(frozen=True)
class Row:
    """A pair in plain numbers: log-ratios, scores and lengths, and the chosen log-likelihood."""

    chosen: float
    rejected: float
    scores: tuple[float, float]
    lengths: tuple[int, int]
    wins: tuple[float, float]
    likelihood: float

    @property
    def gap(self) -> float:
        """Difference of the scores."""
        return self.scores[0] - self.scores[1]

    @property
    def mean_gap(self) -> float:
        """Difference of the scores a token."""
        return self.scores[0] / self.lengths[0] - self.scores[1] / self.lengths[1]


def _sigma(x: float) -> float:
    return 1 / (1 + exp(-x))


def _loss(x: float) -> float:
    return log(1 + exp(-x))


def _smoothed(x: float, e: float) -> float:
    return (1 - e) * _loss(x) + e * _loss(-x)


def _exo(x: float, e: float) -> float:
    q = _sigma(x)
    return q * log(q / (1 - e)) + (1 - q) * log((1 - q) / e)


def _discopop(x: float, tau: float) -> float:
    m = _sigma(x / tau)
    return (1 - m) * _loss(x) + m * exp(-x)


STATED: Mapping[str, Callable[[Row, Settings], float]] = {
    "sigmoid": lambda r, c: _loss(c.beta * r.gap),
    "sigmoid_norm": lambda r, c: _loss(c.beta * r.mean_gap),
    "cdpo": lambda r, c: _smoothed(c.beta * r.gap, c.label_smoothing),
    "robust": lambda r, c: (
        (
            (1 - c.label_smoothing) * _loss(c.beta * r.gap)
            - c.label_smoothing * _loss(-c.beta * r.gap)
        )
        / (1 - 2 * c.label_smoothing)
    ),
    "hinge": lambda r, c: max(0.0, 1 - c.beta * r.gap),
    "ipo": lambda r, c: (r.mean_gap - 0.5 / c.beta) ** 2,
    "ipo_sum": lambda r, c: (r.gap - 0.5 / c.beta) ** 2,
    "exo_pair": lambda r, c: _exo(c.beta * r.gap, c.label_smoothing),
    "nca_pair": lambda r, c: (
        _loss(c.beta * r.chosen)
        + 0.5 * _loss(-c.beta * r.chosen)
        + 0.5 * _loss(-c.beta * r.rejected)
    ),
    "bco_pair": lambda r, c: _loss(c.beta * r.chosen) + _loss(-c.beta * r.rejected),
    "sppo_hard": lambda r, c: (r.chosen - 0.5 / c.beta) ** 2 + (r.rejected + 0.5 / c.beta) ** 2,
    "sppo": lambda r, c: (
        0.5 * (r.chosen - (r.wins[0] - 0.5) / c.beta) ** 2
        + 0.5 * (r.rejected - (r.wins[1] - 0.5) / c.beta) ** 2
    ),
    "apo_zero": lambda r, c: 1 - _sigma(c.beta * r.chosen) + _sigma(c.beta * r.rejected),
    "apo_down": lambda r, c: (
        _sigma(c.beta * r.chosen) + 1 - _sigma(c.beta * (r.chosen - r.rejected))
    ),
    "discopop": lambda r, c: _discopop(c.beta * r.gap, c.discopop_tau),
    "sft": lambda *_: -fsum(chain(*CHOSEN)) / sum(map(len, CHOSEN)),
    "sft_mean": lambda r, _: -r.likelihood / r.lengths[0],
    "sft_sum": lambda r, _: -r.likelihood,
}
SCORES: Mapping[str, Callable[[float, float], float]] = {
    "reverse_kl": lambda u, _: u,
    "forward_kl": lambda u, _: 1 - exp(-u),
    "js_divergence": lambda u, _: log(2 * exp(u) / (1 + exp(u))),
    "alpha_divergence": lambda u, a: (exp((a - 1) * u) - 1) / (a - 1),
}


def _sum(tokens: Sequence[float], shared: int, alpha: float | None) -> float:
    return fsum(tokens[:shared]) + (1 if alpha is None else alpha) * fsum(tokens[shared:])


def _rows(c: Settings) -> tuple[list[Row], list[float], list[float]]:
    """Return the pairs, and the gaps of policy and reference, in plain numbers."""
    score, rows, gaps, ref_gaps = SCORES[c.f_divergence_type], list[Row](), list[float](), []
    for chosen, ref_c, rejected, ref_r, *wins in zip(
        CHOSEN, REF_CHOSEN, REJECTED, REF_REJECTED, *WINS, strict=True
    ):
        shared = min(len(chosen), len(rejected))
        win, ref_win, lose, ref_lose = (
            _sum(x, shared, c.ld_alpha) for x in (chosen, ref_c, rejected, ref_r)
        )
        both = (
            score(win - ref_win, c.f_alpha_divergence_coef),
            score(lose - ref_lose, c.f_alpha_divergence_coef),
        )
        lengths = len(chosen), len(rejected)
        ratios = win - ref_win, lose - ref_lose
        rows.append(Row(*ratios, both, lengths, (wins[0], wins[1]), fsum(chosen)))
        gaps.append(win - lose)
        ref_gaps.append(ref_win - ref_lose)
    return rows, gaps, ref_gaps


def _stated(name: str, c: Settings) -> list[float]:
    """Return the loss of each pair by its equation; of sorted ones in the order of the gaps."""
    rows, gaps, ref_gaps = _rows(c)
    if name in STATED:
        return [STATED[name](row, c) for row in rows]
    paired = name == "aot"
    one = sorted(gaps if paired else [row.chosen for row in rows])
    other = sorted(ref_gaps if paired else [row.rejected for row in rows])
    return [_smoothed(c.beta * (a - b), c.label_smoothing) for a, b in zip(one, other, strict=True)]


def token_answers(
    tokens: Tokens, reference: Tokens | None = None, wins: Sequence[float] = ()
) -> Answers:
    """Return answers from log-probabilities of their tokens; the reference's are 0 if None."""
    padded, ref_padded = (
        torch.tensor([[*row, *[0.0] * (WIDTH - len(row))] for row in rows], dtype=torch.float64)
        for rows in (tokens, reference or [[0.0]] * len(tokens))
    )
    lengths = torch.tensor([[len(row)] for row in tokens])
    mask = (torch.arange(WIDTH) < lengths).double()
    return Answers(
        logps=padded,
        ref_logps=ref_padded,
        mask=mask,
        alignment=torch.full_like(padded, ALIGNMENT),
        win_rates=torch.tensor(wins, dtype=torch.float64),
    )


def _pairs() -> Pairs:
    chosen, rejected = (
        token_answers(*columns)
        for columns in ((CHOSEN, REF_CHOSEN, WINS[0]), (REJECTED, REF_REJECTED, WINS[1]))
    )
    return Pairs(chosen=chosen, rejected=rejected)


def _computed(c: Settings) -> torch.Tensor:
    return preference_losses(_pairs(), c).losses


def loss_errors() -> Numbers:
    """Return the error of every loss of a pair, with and without a weight of longer answers."""
    errors: Numbers = []
    for name, alpha in product(PREFERENCES, ALPHAS):
        c = Settings([name], ld_alpha=alpha)
        errors.append(error(_computed(c), _stated(name, c)))
    return errors


def divergence_errors() -> Numbers:
    """Return the error of the logistic loss of every divergence's scores."""
    errors: Numbers = []
    for name in DIVERGENCES:
        c = Settings(["sigmoid"], f_divergence_type=name)
        errors.append(error(_computed(c), _stated("sigmoid", c)))
    near = Settings(["sigmoid"], f_divergence_type="alpha_divergence", f_alpha_divergence_coef=1.0)
    return [*errors, error(_computed(near), _stated("sigmoid", Settings(["sigmoid"])))]


def weight_errors() -> Numbers:
    """Return the errors of weighted sums of losses, and of weights by what the policy samples."""
    mixed = Settings(["sigmoid", "hinge"], loss_weights=[0.8, 0.3])
    parts = zip(_stated("sigmoid", mixed), _stated("hinge", mixed), strict=True)
    errors = [error(_computed(mixed), [0.8 * a + 0.3 * b for a, b in parts])]
    for side, limit in product(("both", "chosen", "rejected"), (None, 1.0)):
        c = Settings(["sigmoid"], use_weighting=True, weighting_side=side, weighting_clamp=limit)
        weighted = zip(_stated("sigmoid", c), _weights(side, limit or inf), strict=True)
        errors.append(error(_computed(c), [loss * weight for loss, weight in weighted]))
    return errors


def _weights(side: str, limit: float) -> Numbers:
    of_answers = {
        name: [exp(fsum(x - ALIGNMENT for x in row) / len(row)) for row in tokens]
        for name, tokens in (("chosen", CHOSEN), ("rejected", REJECTED))
    }
    products = [a * b for a, b in zip(*of_answers.values(), strict=True)]
    return [min(weight, limit) for weight in (of_answers | {"both": products})[side]]


def alignment_errors() -> Numbers:
    """Return the error of what weights compare the log-probabilities of a token with, by row."""
    log_probs = torch.tensor(CHANCES, dtype=torch.float64).log()
    stated = {
        "sampled": log(fsum(p * p for p in CHANCES)),
        "greedy": log(max(CHANCES)),
        "none": 0.0,
    }
    return [error(row.of(log_probs), [stated[name]]) for name, row in ALIGNMENTS.items()]


def step_errors() -> Numbers:
    """Return the errors of losses of several pairs in value and gradient, read in two parts."""
    names = [name for name, row in PREFERENCES.items() if not row.splits]
    cases = [Settings([name], ld_alpha=alpha) for name, alpha in product(names, ALPHAS)]
    return [found for c in cases for found in _errors_in_parts(c)]


def _errors_in_parts(c: Settings) -> Numbers:
    pairs, count = _pairs(), len(CHOSEN)
    logps = [side.logps.requires_grad_() for side in (pairs.chosen, pairs.rejected)]
    scores = scores_of(pairs, c)
    rows = scores.rows.detach()
    parts = [
        preference_losses(_part(pairs, slice(i, i + 2)), c, Step(rows, i)).losses.sum() / count
        for i in range(0, count, 2)
    ]
    mean = fsum(_stated(c.loss_type[0], c)) / count
    whole, sum_of_parts = (
        torch.autograd.grad(loss, logps, materialize_grads=True, retain_graph=True)
        for loss in (preference_losses(pairs, c).losses.mean(), torch.stack(parts).sum())
    )
    gradients = [error(a, b.flatten().tolist()) for a, b in zip(whole, sum_of_parts, strict=True)]
    alone = Step(rows, None).around(scores).rows
    values = [error(part, [mean / len(parts)]) for part in parts]
    return [*values, *gradients, error(alone, rows.flatten().tolist())]


def _part(pairs: Pairs, rows: slice) -> Pairs:
    chosen, rejected = (
        replace(
            side,
            logps=side.logps[rows],
            ref_logps=side.ref_logps[rows],
            mask=side.mask[rows],
            alignment=None,
            win_rates=None,
        )
        for side in (pairs.chosen, pairs.rejected)
    )
    return Pairs(chosen=chosen, rejected=rejected)
