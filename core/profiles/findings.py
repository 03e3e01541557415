"""Findings about algorithms: a sentence for each, and the scores that it follows from."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A sentence about an algorithm.

    Attributes:
        text: The sentence.
        better: Probes on which the algorithm is better than plain GRPO.
        worse: Probes on which it is worse.
        alike: Probes on which no difference was found.
    """

    text: str
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


FINDINGS: Mapping[str, Finding] = {}
