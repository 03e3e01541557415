"""The description of a paper as data, and the registry of papers."""

from core.paper.page import (
    Because,
    Evaluation,
    Paper,
    Reward,
    Setting,
    at_rates,
    because,
    cite,
    in_regime,
)
from core.paper.printed import Column, Layout, Marked, Number, Reported, marked, printed

__all__ = [
    "Because",
    "Column",
    "Evaluation",
    "Layout",
    "Marked",
    "Number",
    "Paper",
    "Reported",
    "Reward",
    "Setting",
    "at_rates",
    "because",
    "cite",
    "in_regime",
    "marked",
    "printed",
]
