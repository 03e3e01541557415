"""Alignments of WPO's weights beside their equations in plain numbers; arXiv 2406.11827."""

from math import log

import torch

from core.losses.pair_weights import ALIGNMENTS

CHANCES = (0.5, 0.3, 0.2)
STATED = {"sampled": log(0.25 + 0.09 + 0.04), "greedy": log(0.5), "none": 0.0}


def alignment_errors() -> list[float]:
    """Return the differences of the alignments of a token from their equations, in nats."""
    log_probs = torch.tensor(CHANCES, dtype=torch.float64).log()
    return [abs(row.of(log_probs).item() - STATED[name]) for name, row in ALIGNMENTS.items()]
