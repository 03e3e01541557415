"""The accuracy at the end of training, from the held-out curve and the test draw together."""

from dataclasses import dataclass

from core.claims.curves import HELD_OUT_ACCURACY, curve_of, late
from core.claims.measures import START, Measure, missing
from core.claims.needs import Need, Record
from core.claims.outcomes import Score, score

SIZE = "heldout_problems"  # the setting that holds the number of held-out problems


@dataclass(frozen=True)
class EndAccuracy(Measure):
    """A measure of the accuracy in percent over held-out and test problems.

    It is the mean of the last third of the held-out curve and of the test scores, weighted by their
    numbers of problems. The last third scatters less than its last point.
    """

    test: Score

    def __str__(self) -> str:
        return f"ended({', '.join(self.test.benchmarks)})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The held-out curve and the scores, which a record must hold."""
        return Need("curve", HELD_OUT_ACCURACY), *self.test.needs

    @property
    def percent(self) -> bool:
        """True: it is a percentage."""
        return True

    def stand(self, record: Record, arm: str) -> tuple[float, float]:
        """Return the accuracy of the starting model and that at the end."""
        first = curve_of(record, arm, HELD_OUT_ACCURACY)[0][1]
        return self._together(first, record, START), self.read(record, arm)

    def read(self, record: Record, arm: str) -> float:
        """Return the weighted mean of both accuracies of the arm."""
        return self._together(late(HELD_OUT_ACCURACY).read(record, arm), record, arm)

    def _together(self, held_out: float, record: Record, arm: str) -> float:
        setting = record["config"].get(SIZE)
        if setting is None:
            raise missing(record, arm, f"setting {SIZE!r}")
        rows = {row["mirrors"]: row["n"] for row in record["scores"]}
        held_out_size = setting["value"]
        test_size = sum(rows[name] for name in self.test.benchmarks)
        test = self.test.read(record, arm)
        return (held_out_size * held_out + test_size * test) / (held_out_size + test_size)


def ended(*benchmarks: str) -> EndAccuracy:
    """Return the measure of the accuracy at the end of training, in percent.

    Args:
        benchmarks: whose greedy scores join the held-out problems, by the paper's names.
    """
    return EndAccuracy(score(*benchmarks))
