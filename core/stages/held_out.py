"""The split of a run's rows into training and held-out rows."""

from pathlib import Path

from core.data.sources import Row
from core.settings.layers import REGIME
from core.settings.resolved import HELD_OUT_ROWS, Resolved
from core.stages.data import read_rows, split_rows
from eval.terminal import say

ANSWER_TOKENS = 1024  # of held-out answers, where neither the run nor its family says
FOLDER = "held-out"  # of the graded answers, in that of the training


def split_as_asked(resolved: Resolved, folder: Path, *, says: bool) -> tuple[list[Row], list[Row]]:
    """Return the training rows and the held-out rows of a data stage's folder.

    Args:
        resolved: The settings of the run.
        folder: The folder of the data stage.
        says: Whether to print how many rows are held out if they are fewer than usual. An order
            prints it of all rows but those that a preparation makes later, whose training does.

    Raises:
        BadValue: the paper or the command line asks for more held-out rows than there can be.
    """
    number, is_given = resolved.run.heldout_problems, resolved.gives_held_out
    train, valid = split_rows(read_rows(folder), number, given=is_given)
    source = resolved.values[HELD_OUT_ROWS].source if HELD_OUT_ROWS in resolved.values else ""
    in_profile = resolved.family.profiles[resolved.scale].get(HELD_OUT_ROWS, number)
    usual = number if source.startswith(f"{REGIME} ") else in_profile
    if says and not is_given and len(valid) != usual:
        say(
            f"held out: {len(valid)} of {len(train) + len(valid)} rows of {resolved.run.data}, not "
            f"{usual} ({source}); {HELD_OUT_ROWS}=N sets the number"
        )
    return train, valid
