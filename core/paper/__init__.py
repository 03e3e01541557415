"""What a paper is made of, and where papers are found."""

from core.paper.page import Claim, Paper, Relation, Reward, Setting, cite
from core.paper.printed import Column, Layout, Marked, Number, Reported, marked, printed

__all__ = [
    "Claim",
    "Column",
    "Layout",
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
