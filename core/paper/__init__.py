"""What a paper is made of, and where papers are found."""

from core.paper.page import (
    Evaluation,
    Marked,
    Number,
    Paper,
    Reported,
    Reward,
    Setting,
    cite,
    marked,
    printed,
)

__all__ = [
    "Evaluation",
    "Marked",
    "Number",
    "Paper",
    "Reported",
    "Reward",
    "Setting",
    "cite",
    "marked",
    "printed",
]
