"""What a paper is made of, and where papers are found."""

from core.paper.page import (
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
