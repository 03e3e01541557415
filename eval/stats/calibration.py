"""The calibration error of answers: how far their chances are from how often they are right."""

from collections.abc import Sequence

import numpy as np

BINS = 10


def calibration_gaps(
    chances: Sequence[Sequence[float]], right: Sequence[Sequence[bool]]
) -> list[list[float]]:
    """Return a signed gap of each answer, whose mean over all answers is the calibration error.

    The answers are dealt into `BINS` bins of equal count in the order of their chances; those of
    one chance share a bin. The error is the mean over the answers of |mean chance - share of right
    answers| in their bin. The gap of an answer is its chance less 1 or 0, with the sign of the sum
    of these differences in its bin. The noise of a bin adds to the error, which is thus above 0
    for calibrated answers: by 0.8 of the standard error of the share of right answers in a bin.

    Args:
        chances: The chance of each answer, 0 to 1, a row for each problem and K answers a row.
        right: Whether each answer is right.
    """
    chance = np.asarray(chances, dtype=float)
    gap, values = chance - np.asarray(right, dtype=float), np.sort(chance, axis=None)
    middle_rank = (np.searchsorted(values, chance) + np.searchsorted(values, chance, "right")) / 2
    bins = (BINS * middle_rank / chance.size).astype(int)
    signs = np.sign(np.bincount(bins.ravel(), weights=gap.ravel(), minlength=BINS))
    gaps: list[list[float]] = (gap * signs[bins]).tolist()
    return gaps
