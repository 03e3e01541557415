"""Extrapolation of a saturating curve, fitted to the beginning of training, to its end."""

from typing import Any

from core.claims.curves import Curve, OfCurve
from core.claims.needs import MissingMeasure

UNKNOWNS = 3  # of the curve: its end A, the step C_mid half way to it, and its exponent B
STEEPEST = 10.0  # exponent


def foretold(metric: str, end: float = 0.5) -> OfCurve:
    """Return the measure of a percentage at the last step, extrapolated from earlier points.

    A saturating curve is fitted by least squares to the points up to the fraction `end` of
    training: R(C) = R_0 + (A - R_0) / (1 + (C_mid / C)^B) with R_0 the first point, A from 0 to
    100, C_mid up to ten trainings and B from 0.1 to 10. C counts steps from the first point; in
    arXiv 2510.13786 it is compute.
    """
    name = f"foretold({metric})" if end == 0.5 else f"foretold({metric}, to {end:g})"
    return OfCurve(name, metric, _foretold, {"end": end})


def _foretold(points: Curve, end: float) -> float:
    # takes seconds to import
    from scipy import optimize  # pyright: ignore[reportMissingTypeStubs] - it ships none

    (begin, first), (last, _) = points[0], points[-1]
    fitted = [(step - begin, value) for step, value in points[1:] if step <= end * last]
    if len(fitted) < UNKNOWNS:
        raise MissingMeasure(
            f"a curve with {len(fitted)} points after the first and up to {end:g} of training; "
            f"expected at least {UNKNOWNS} to fit one to"
        )
    length = last - begin

    def residuals(unknown: tuple[float, float, float]) -> list[float]:
        return [saturating(step / length, first, *unknown) - value for step, value in fitted]

    scipy: Any = optimize  # Any: it is not typed
    # Least squares may end in a local minimum: the best of several starts counts.
    bounds = ([0.0, 0.01, 0.1], [100.0, 10.0, STEEPEST])
    starts = [(top, middle, 1.0) for top in (25.0, 75.0, 99.0) for middle in (0.1, 0.5, 2.0)]
    fits = [scipy.least_squares(residuals, start, bounds=bounds) for start in starts]
    return saturating(1.0, first, *min(fits, key=lambda fit: float(fit.cost)).x)


def saturating(at: float, first: float, top: float, middle: float, exponent: float) -> float:
    """Return R_0 + (A - R_0) / (1 + (C_mid / C)^B) at C > 0.

    Args:
        at: C, in trainings.
        first: R_0, the first point.
        top: A, the asymptote.
        middle: C_mid, in trainings.
        exponent: B.
    """
    return float(first + (top - first) / (1.0 + (middle / at) ** exponent))
