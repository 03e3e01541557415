"""An interval as a bar on a line, in units of the margin within which a difference is none."""

from dataclasses import dataclass

REACH = 10.0  # margins on either side of zero that a line shows
INSIDE = 0.92  # of the half line: the middle of an interval beside the arrow of its cut end


@dataclass(frozen=True, kw_only=True)
class IntervalBar:
    """The ends of an interval and its middle on a line from 0 to 100, whose zero is at 50.

    `band` is the distance from zero of a difference that counts as none, 0 if there is no margin.
    An end that lies beyond the line is cut.
    """

    low: float
    middle: float
    high: float
    band: float
    low_is_cut: bool
    high_is_cut: bool

    @property
    def text(self) -> str:
        """The bar in 21 characters: the interval, its middle, and zero in the middle of the line.

        A difference that counts as none is dotted.
        """
        places = range(0, 101, 5)
        line = ["·" if abs(place - 50) <= self.band else " " for place in places]
        line[10] = "│"
        first, middle, last = (round(end / 5) for end in (self.low, self.middle, self.high))
        line[first : last + 1] = "─" * (last + 1 - first)
        line[first], line[last] = "◄" if self.low_is_cut else "├", "►" if self.high_is_cut else "┤"
        line[middle] = "●"
        return "".join(line)


def interval_bar(effect: float, low: float, high: float, margin: float) -> IntervalBar:
    """Return the bar of an effect with its interval.

    Args:
        effect: in the middle of the interval.
        low: end of the interval.
        high: end of the interval.
        margin: the size below which a difference counts as none. Without one, 0, the interval fills
            the line.
    """
    unit = margin or max(abs(low), abs(high)) / REACH or 1.0

    def place(value: float, end: float = 1.0) -> float:
        return 50 + 50 * max(-end, min(end, value / unit / REACH))

    return IntervalBar(
        low=place(low),
        middle=place(effect, INSIDE),
        high=place(high),
        band=50 / REACH if margin else 0.0,
        low_is_cut=low < -REACH * unit,
        high_is_cut=high > REACH * unit,
    )
