"""What a paper is made of, and where papers are found."""

from core.paper.page import Evaluation, Paper, Reward, Setting, cite
from core.paper.printed import Column, Layout, Marked, Number, Reported, marked, printed

__all__ = [
    "Column",
    "Evaluation",
    "Layout",
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
