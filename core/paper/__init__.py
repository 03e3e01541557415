"""What a paper is made of, and where papers are found."""

from core.paper.page import (
    Claim,
    Evaluation,
    Marked,
    Number,
    Paper,
    Relation,
    Reported,
    Reward,
    Setting,
    cite,
    marked,
    printed,
)

__all__ = [
    "Claim",
    "Evaluation",
    "Marked",
    "Number",
    "Paper",
    "Relation",
    "Reported",
    "Reward",
    "Setting",
    "cite",
    "marked",
    "printed",
]
