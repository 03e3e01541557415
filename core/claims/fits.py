"""What a curve that saturates, fitted to the beginning of training, says of its end."""

from typing import Any

from core.claims.curves import Curve, OfCurve
from core.claims.needs import MissingMeasure

UNKNOWNS = 3  # of the curve: its end A, the step C_mid half way to it, and its exponent B
STEEPEST = 10.0  # exponent


def foretold(metric: str, end: float = 0.5) -> OfCurve:
    """A percentage at the last step, by the curve that fits the points up to a fraction of it best.

    R(C) = R_0 + (A - R_0) / (1 + (C_mid / C)^B) with R_0 the first point, A from 0 to 100, C_mid
    up to ten trainings and B from 0.1 to 10, by least squares; C counts steps from the first point.
    arXiv 2510.13786, where C is compute.
    """
    name = f"foretold({metric})" if end == 0.5 else f"foretold({metric}, to {end:g})"
    return OfCurve(name, metric, _foretold, {"end": end})


def _foretold(points: Curve, end: float) -> float:
    # takes seconds to import
    from scipy import optimize  # pyright: ignore[reportMissingTypeStubs] - it ships none

    (begin, first), (last, _) = points[0], points[-1]
    known = [(step - begin, value) for step, value in points[1:] if step <= end * last]
    if len(known) < UNKNOWNS:
        raise MissingMeasure(
            f"a curve with {len(known)} points after the first and up to {end:g} of training; "
            f"expected at least {UNKNOWNS} to fit one to"
        )
    length = last - begin

    def misses(unknown: tuple[float, float, float]) -> list[float]:
        return [saturating(step / length, first, *unknown) - value for step, value in known]

    scipy: Any = optimize  # Any: it is not typed
    # Least squares may end in a valley: the best of several beginnings.
    bounds = ([0.0, 0.01, 0.1], [100.0, 10.0, STEEPEST])
    begins = [(top, middle, 1.0) for top in (25.0, 75.0, 99.0) for middle in (0.1, 0.5, 2.0)]
    found = [scipy.least_squares(misses, one, bounds=bounds) for one in begins]
    _, place = min((float(fit.cost), place) for place, fit in enumerate(found))
    return saturating(1.0, first, *found[place].x)


def saturating(at: float, first: float, top: float, middle: float, exponent: float) -> float:
    """R_0 + (A - R_0) / (1 + (C_mid / C)^B) at C > 0."""
    return float(first + (top - first) / (1.0 + (middle / at) ** exponent))
