"""The learning-rate trials of a paper as a passage of its report."""

from collections.abc import Sequence

from core.records.fair import at_edge, final
from core.records.schema import TuningRecord
from eval.tables.report import Passage

TITLE = "Learning rates"


def trial_passages(tunings: Sequence[TuningRecord]) -> tuple[Passage, ...]:
    """Return the passage of the held-out accuracy at each rate tried; empty without trials."""
    if not tunings:
        return ()
    seed = tunings[0]["seed"]
    head = f"Held-out accuracy in % at the end of a training with seed {seed}, by learning rate."
    return (Passage(title=TITLE, text="\n".join([head, "", *map(trial_line, tunings)])),)


def trial_line(tuning: TuningRecord) -> str:
    """Format the trials of an arm: the accuracy at each rate, and the chosen rate."""
    trials = sorted(tuning["trials"], key=lambda trial: trial["factor"])
    accuracies = "".join(
        f"{trial['learning_rate']:>10.3g}: {final(trial):5.1f}" for trial in trials
    )
    best = next(trial["learning_rate"] for trial in trials if trial["factor"] == tuning["best"])
    own_note = ", its own" if tuning["best"] == 1 else ""
    edge = "; at the edge: a rate beyond may be better" if at_edge(tuning) else ""
    return f"{tuning['arm']:<20}{accuracies}   takes {best:.3g}{own_note}{edge}"
