"""Trials of learning rates as a report shows them: what was tried, and what each arm took."""

from collections.abc import Sequence

from core.records.fair import at_edge, final
from core.records.schema import TuningRecord
from eval.tables.report import Passage

TITLE = "Learning rates"


def trial_passages(tunings: Sequence[TuningRecord]) -> tuple[Passage, ...]:
    """The held-out accuracy at every rate that an arm tried; nothing where none did."""
    if not tunings:
        return ()
    seed = tunings[0]["seed"]
    head = f"Held-out accuracy in % at the end of a training with seed {seed}, by learning rate."
    return (Passage(title=TITLE, text="\n".join([head, "", *map(trial_line, tunings)])),)


def trial_line(tuning: TuningRecord) -> str:
    """An arm: the accuracy at each rate, and the rate that it took."""
    tried = sorted(tuning["trials"], key=lambda one: one["factor"])
    found = "".join(f"{one['learning_rate']:>10.3g}: {final(one):5.1f}" for one in tried)
    best = next(one["learning_rate"] for one in tried if one["factor"] == tuning["best"])
    own = ", its own" if tuning["best"] == 1 else ""
    edge = "; at the edge: a rate beyond may be better" if at_edge(tuning) else ""
    return f"{tuning['arm']:<20}{found}   takes {best:.3g}{own}{edge}"
