"""The language of claims: measures, sides made of measures, and claims that compare sides."""

from core.claims.arms import (
    deviation,
    highest,
    least,
    lowest,
    most,
    rank_correlation,
    setting,
    spread,
)
from core.claims.claim import Claim, Expected, Untestable, problems
from core.claims.comparison import Comparison, Side
from core.claims.curves import (
    at_step,
    best,
    distance,
    drawdown,
    early,
    final,
    fluctuation,
    gain,
    largest,
    late,
    middle,
    share_of_steps,
    whole,
)
from core.claims.end_accuracy import ended
from core.claims.fits import foretold
from core.claims.grids import inside, log2
from core.claims.laws import law, simulated, timed
from core.claims.measures import START, Measure
from core.claims.needs import BadClaim, MissingMeasure, Need, Record, Runs
from core.claims.outcomes import at_k, gain_at_k, probability, score
from core.claims.thresholds import completions_to, mean_along, steps_to, tokens_to, when
from core.claims.win_rates import win_rate

__all__ = [
    "START",
    "BadClaim",
    "Claim",
    "Comparison",
    "Expected",
    "Measure",
    "MissingMeasure",
    "Need",
    "Record",
    "Runs",
    "Side",
    "Untestable",
    "at_k",
    "at_step",
    "best",
    "completions_to",
    "deviation",
    "distance",
    "drawdown",
    "early",
    "ended",
    "final",
    "fluctuation",
    "foretold",
    "gain",
    "gain_at_k",
    "highest",
    "inside",
    "largest",
    "late",
    "law",
    "least",
    "log2",
    "lowest",
    "mean_along",
    "middle",
    "most",
    "probability",
    "problems",
    "rank_correlation",
    "score",
    "setting",
    "share_of_steps",
    "simulated",
    "spread",
    "steps_to",
    "timed",
    "tokens_to",
    "when",
    "whole",
    "win_rate",
]
