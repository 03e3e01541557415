"""Losses of preference pairs with a reference: scores of both answers, and a link of the two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from core.losses.divergence_scores import DIVERGENCES, log_sigmoid
from core.losses.pair_scores import Scores, Side, Step
from core.losses.pair_weights import limited_weights, log_weights
from core.losses.paired_answers import Pairs, sums_of
from core.shapes import B


@runtime_checkable
class PreferenceConfig(Protocol):
    """Settings of a preference loss, which the config of a trainer has."""

    @property
    def loss_type(self) -> Sequence[str]:
        """The names of the losses, rows of `PREFERENCES`."""
        ...

    loss_weights: list[float] | None
    beta: float
    label_smoothing: float
    f_divergence_type: str
    f_alpha_divergence_coef: float
    ld_alpha: float | None
    use_weighting: bool
    weighting_side: str
    weighting_clamp: float | None
    discopop_tau: float


@dataclass
class PreferenceSettings:
    """A `PreferenceConfig` of its own, with the defaults of `DPOConfig`."""

    loss_type: Sequence[str]
    loss_weights: list[float] | None = None
    beta: float = 0.1
    label_smoothing: float = 0.0
    f_divergence_type: str = "reverse_kl"
    f_alpha_divergence_coef: float = 0.5
    ld_alpha: float | None = None
    use_weighting: bool = False
    weighting_side: str = "both"
    weighting_clamp: float | None = None
    discopop_tau: float = 0.05


Link = Callable[[Scores, PreferenceConfig], B]
WIN_COLUMNS = ("chosen_win_rate", "rejected_win_rate")  # of the data


def sigmoid(s: Scores, c: PreferenceConfig) -> B:
    """Return -log sigma(beta gap); arXiv 2305.18290 eq. 7."""
    return -log_sigmoid(c.beta * s.gap)


def sigmoid_norm(s: Scores, c: PreferenceConfig) -> B:
    """Return -log sigma(beta gap) of scores a token; arXiv 2411.15124 s5."""
    return -log_sigmoid(c.beta * s.mean_gap)


def smoothed(scaled: B, e: float) -> B:
    """Return the logistic loss of a scaled gap whose label is wrong with chance e.

    (1 - e) times that of the gap plus e times that of its negative.
    """
    return -(1 - e) * log_sigmoid(scaled) - e * log_sigmoid(-scaled)


def cdpo(s: Scores, c: PreferenceConfig) -> B:
    """Return the logistic loss with smoothed labels (conservative DPO)."""
    return smoothed(c.beta * s.gap, c.label_smoothing)


def robust(s: Scores, c: PreferenceConfig) -> B:
    """Return the loss whose mean over flipped labels is DPO's of clean ones; arXiv 2403.00409."""
    e, scaled = c.label_smoothing, c.beta * s.gap
    return (-(1 - e) * log_sigmoid(scaled) + e * log_sigmoid(-scaled)) / (1 - 2 * e)


def hinge(s: Scores, c: PreferenceConfig) -> B:
    """Return max(0, 1 - beta gap); arXiv 2309.06657."""
    return torch.relu(1 - c.beta * s.gap)


def ipo(s: Scores, c: PreferenceConfig) -> B:
    """Return (gap - 1 / (2 beta))^2 of scores a token; arXiv 2310.12036, as its authors ran it."""
    return (s.mean_gap - 1 / (2 * c.beta)).square()


def ipo_sum(s: Scores, c: PreferenceConfig) -> B:
    """Return (gap - 1 / (2 beta))^2; arXiv 2310.12036 eq. 17 as printed."""
    return (s.gap - 1 / (2 * c.beta)).square()


def exo(scores: Tensor, target: Tensor) -> B:
    """Return KL(q || p), q the softmax of the scores of K answers (B, K); arXiv 2402.00856 eq. 14.

    `target` (K,) or (B, K) holds the logarithms of p.
    """
    logs = scores.log_softmax(-1)
    return (logs.exp() * (logs - target)).sum(-1)


def exo_pair(s: Scores, c: PreferenceConfig) -> B:
    """Return `exo` of both answers, p = (1 - e, e); arXiv 2402.00856 eq. 16."""
    scores = c.beta * torch.stack([s.chosen.score, s.rejected.score], -1)
    e = c.label_smoothing
    return exo(scores, scores.new_tensor([log(1 - e), log(e)]))


def nca_pair(s: Scores, c: PreferenceConfig) -> B:
    """Return -log sigma(r_w) - (log sigma(-r_w) + log sigma(-r_l)) / 2; arXiv 2402.05369."""
    chosen, rejected = c.beta * s.chosen.ratio, c.beta * s.rejected.ratio
    return -log_sigmoid(chosen) - (log_sigmoid(-chosen) + log_sigmoid(-rejected)) / 2


def bco_pair(s: Scores, c: PreferenceConfig) -> B:
    """Return -log sigma(r_w) - log sigma(-r_l); arXiv 2404.04656 without its shift."""
    return -log_sigmoid(c.beta * s.chosen.ratio) - log_sigmoid(-c.beta * s.rejected.ratio)


def sppo_hard(s: Scores, c: PreferenceConfig) -> B:
    """Return the squared distances to +-1 / (2 beta); arXiv 2405.00675 eq. 4.7, certain wins."""
    target = 0.5 / c.beta
    return (s.chosen.ratio - target).square() + (s.rejected.ratio + target).square()


def sppo(s: Scores, c: PreferenceConfig) -> B:
    """Return the mean of (ratio - (win rate - 1/2) / beta)^2 of both; arXiv 2405.00675 eq. 4.4."""
    return (win_distance(s.chosen, c.beta) + win_distance(s.rejected, c.beta)) / 2


def win_distance(side: Side, beta: float) -> B:
    """Return the squared distance of a log-ratio to (win rate - 1/2) / beta.

    Raises:
        TypeError: there are no win rates.
    """
    if side.win_rates is None:
        raise TypeError("loss_type='sppo' needs the win rates of both answers")
    return (side.ratio - (side.win_rates - 0.5) / beta).square()


def aot(s: Scores, c: PreferenceConfig) -> B:
    """Return the smoothed loss between sorted gaps of policy and reference; arXiv 2406.05882."""
    policy = (s.chosen.logp - s.rejected.logp).sort().values
    reference = (s.chosen.ref_logp - s.rejected.ref_logp).sort().values
    return smoothed(c.beta * (policy - reference), c.label_smoothing)


def aot_unpaired(s: Scores, c: PreferenceConfig) -> B:
    """Return the smoothed loss between sorted log-ratios of both answers; arXiv 2406.05882."""
    gap = s.chosen.ratio.sort().values - s.rejected.ratio.sort().values
    return smoothed(c.beta * gap, c.label_smoothing)


def apo_zero(s: Scores, c: PreferenceConfig) -> B:
    """Return sigma(-r_w) + sigma(r_l); arXiv 2408.06266 eq. 7."""
    return torch.sigmoid(-c.beta * s.chosen.ratio) + torch.sigmoid(c.beta * s.rejected.ratio)


def apo_down(s: Scores, c: PreferenceConfig) -> B:
    """Return sigma(r_w) + sigma(r_l - r_w); arXiv 2408.06266 eq. 8."""
    chosen, rejected = c.beta * s.chosen.ratio, c.beta * s.rejected.ratio
    return torch.sigmoid(chosen) + torch.sigmoid(rejected - chosen)


def discopop(s: Scores, c: PreferenceConfig) -> B:
    """Return (1 - m) logistic + m exponential loss, m = sigma(beta gap / tau); arXiv 2406.08414."""
    scaled = c.beta * s.gap
    mixed = torch.sigmoid(scaled / c.discopop_tau)
    return -log_sigmoid(scaled) * (1 - mixed) + (-scaled).exp() * mixed


def sft(s: Scores, c: PreferenceConfig) -> B:  # noqa: ARG001 - a table row
    """Return the mean negative log-likelihood of all chosen tokens, the same for each pair."""
    chosen = s.chosen
    return -(chosen.total.sum() / chosen.length.sum()).expand_as(chosen.total)


def sft_mean(s: Scores, c: PreferenceConfig) -> B:  # noqa: ARG001 - a table row
    """Return the mean negative log-likelihood of each chosen answer's tokens; arXiv 2404.19733."""
    return -s.chosen.total / s.chosen.length


def sft_sum(s: Scores, c: PreferenceConfig) -> B:  # noqa: ARG001 - a table row
    """Return the negative log-likelihood of each chosen answer; arXiv 2405.16436."""
    return -s.chosen.total


@dataclass(frozen=True, kw_only=True)
class Preference:
    """A row of `PREFERENCES`: the loss of each pair.

    Attributes:
        link: Maps scores and settings to losses (B,).
        doc: One line of documentation.
        parameters: Names of the settings that have an effect with this loss.
        takes_divergences: Whether other divergences than the reverse KL are defined for it: the
            partition function cancels in its gap, or it reads no score.
        splits: Whether the loss of a pair does not depend on the others of its micro-batch.
        needs_wins: Whether it reads `WIN_COLUMNS`.
        needs_smoothing: Whether it is infinite without `label_smoothing`.
    """

    link: Link
    doc: str
    parameters: tuple[str, ...] = ()
    takes_divergences: bool = False
    splits: bool = True
    needs_wins: bool = False
    needs_smoothing: bool = False


SMOOTHS = ("label_smoothing",)
PREFERENCES = {
    "sigmoid": Preference(link=sigmoid, doc="DPO, arXiv 2305.18290", takes_divergences=True),
    "hinge": Preference(link=hinge, doc="a hinge, arXiv 2309.06657", takes_divergences=True),
    "ipo": Preference(link=ipo, doc="IPO of scores a token", takes_divergences=True),
    "exo_pair": Preference(
        link=exo_pair,
        doc="EXO, arXiv 2402.00856",
        parameters=SMOOTHS,
        takes_divergences=True,
        needs_smoothing=True,
    ),
    "nca_pair": Preference(link=nca_pair, doc="NCA, arXiv 2402.05369"),
    "robust": Preference(
        link=robust, doc="robust DPO, arXiv 2403.00409", parameters=SMOOTHS, takes_divergences=True
    ),
    "bco_pair": Preference(link=bco_pair, doc="BCO without its shift, arXiv 2404.04656"),
    "sppo_hard": Preference(link=sppo_hard, doc="SPPO of certain wins, arXiv 2405.00675"),
    "aot": Preference(link=aot, doc="AOT, arXiv 2406.05882", parameters=SMOOTHS, splits=False),
    "aot_unpaired": Preference(
        link=aot_unpaired, doc="unpaired AOT, arXiv 2406.05882", parameters=SMOOTHS, splits=False
    ),
    "apo_zero": Preference(link=apo_zero, doc="APO, arXiv 2408.06266 eq. 7"),
    "apo_down": Preference(link=apo_down, doc="APO, arXiv 2408.06266 eq. 8"),
    "discopop": Preference(
        link=discopop,
        doc="DiscoPOP, arXiv 2406.08414",
        parameters=("discopop_tau",),
        takes_divergences=True,
    ),
    "sft": Preference(
        link=sft, doc="likelihood of the chosen tokens", takes_divergences=True, splits=False
    ),
    "sigmoid_norm": Preference(
        link=sigmoid_norm, doc="DPO of scores a token, arXiv 2411.15124", takes_divergences=True
    ),
    "cdpo": Preference(
        link=cdpo, doc="DPO with smoothed labels", parameters=SMOOTHS, takes_divergences=True
    ),
    "sppo": Preference(link=sppo, doc="SPPO of win rates, arXiv 2405.00675", needs_wins=True),
    "ipo_sum": Preference(link=ipo_sum, doc="IPO as printed", takes_divergences=True),
    "sft_mean": Preference(link=sft_mean, doc="chosen likelihood a token", takes_divergences=True),
    "sft_sum": Preference(link=sft_sum, doc="chosen likelihood, summed", takes_divergences=True),
}


def scores_of(pairs: Pairs, c: PreferenceConfig) -> Scores:
    """Return the inputs of a link from pairs, see `sums_of` and `DIVERGENCES`."""
    logps, ref_logps = sums_of(pairs, c.ld_alpha)
    derivative = DIVERGENCES[c.f_divergence_type].derivative
    chosen, rejected = (
        Side(
            logp=logp,
            ref_logp=ref_logp,
            score=derivative(logp - ref_logp, c.f_alpha_divergence_coef),
            length=answers.lengths,
            total=(answers.logps * answers.mask).sum(-1),
            win_rates=answers.win_rates,
        )
        for answers, logp, ref_logp in zip(
            (pairs.chosen, pairs.rejected), logps, ref_logps, strict=True
        )
    )
    return Scores(chosen=chosen, rejected=rejected)


@dataclass(frozen=True, kw_only=True)
class PreferenceLosses:
    """The loss of each pair (B,), and what metrics are made of.

    Attributes:
        losses: The losses.
        scores: The inputs of the links.
        log_weights: The logarithm of the weight of each pair before any limit; None without.
    """

    losses: B
    scores: Scores
    log_weights: B | None = None


def losses_in_step(link: Link, scores: Scores, c: PreferenceConfig, step: Step) -> B:
    """Return the mean loss of all pairs of a step for each of the B of a micro-batch.

    Its gradient is such that the mean over the N pairs of the step, in any number of micro-batches,
    has the gradient of the loss of all pairs at once.
    """
    losses = link(step.around(scores), c)
    total = losses.sum()
    own = (total - total.detach()) / len(scores.gap)  # 0, with the gradient of these pairs
    return (own + total.detach() / len(losses)).expand_as(scores.gap)


def preference_losses(
    pairs: Pairs, c: PreferenceConfig, step: Step | None = None
) -> PreferenceLosses:
    """Return the weighted sum of the losses of each pair.

    The losses are `loss_type` with the weights `loss_weights`, 1 for each if None. With
    `use_weighting` each pair is multiplied by its weight, see `log_weights`.

    Args:
        pairs: The pairs of a micro-batch.
        c: The settings.
        step: The pairs that losses read which do not split; None for those of the micro-batch.
    """
    scores = scores_of(pairs, c)
    weights = c.loss_weights or [1.0] * len(c.loss_type)
    rows = [PREFERENCES[name] for name in c.loss_type]
    each = [
        row.link(scores, c)
        if row.splits or step is None
        else losses_in_step(row.link, scores, c, step)
        for row in rows
    ]
    losses = torch.stack([w * loss for w, loss in zip(weights, each, strict=True)]).sum(0)
    if not c.use_weighting:
        return PreferenceLosses(losses=losses, scores=scores)
    logs = log_weights(pairs, c)
    weighted = losses * limited_weights(logs, c)
    return PreferenceLosses(losses=weighted, scores=scores, log_weights=logs)
