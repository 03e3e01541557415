"""The verdicts on claims, with their marks and meanings; `page.css` has their colours."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class VerdictWord:
    """A verdict: its mark as an SVG path around the origin, and what it means.

    The mark is filled if the runs decided the claim. A verdict without a mark has no interval.
    """

    meaning: str
    path: str = ""
    decided: bool = False


CIRCLE = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"
VERDICTS: Mapping[str, VerdictWord] = {
    "held": VerdictWord("the interval is on the claim's side", CIRCLE, decided=True),
    "refuted": VerdictWord("the interval is on the other side", "M-5-5h10v10h-10z", decided=True),
    "tie": VerdictWord(
        "the difference is within the margin of equality", "M0-6.5L6.5 0 0 6.5-6.5 0z", decided=True
    ),
    "undecided": VerdictWord("the interval allows for more than one of these", CIRCLE),
    "no room": VerdictWord(
        "a percentage is too close to 0 or 100 for the claimed difference", "M-5-5h10v10h-10z"
    ),
    "inert": VerdictWord(
        "the mechanism did not act: its statistic misses its bound", "M0-6L6 5h-12z"
    ),
    "unhealthy": VerdictWord(
        "a compared arm ended below the model that it started from", "M0 6L6-5h-12z"
    ),
    "described": VerdictWord("the runs could hardly come out otherwise: numbers, no verdict"),
    "untestable": VerdictWord("nothing here can test the claim"),
    "untested": VerdictWord("nothing was measured yet"),
}
