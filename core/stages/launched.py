"""The program of one process of a launch, which trains the share of that process."""

import json
import os
import sys
from pathlib import Path

from core.spread.launcher import FAILED, OUTPUTS
from core.spread.pool import die_with_parent


def main(seed: str, models: str, data: str, folder: str, *arguments: str) -> None:
    """Train as one process of a launch, and write the outputs as its first process.

    The text of a user's error is left in a file of the folder.
    """
    die_with_parent()  # before the seconds that these take
    import torch

    from core.records.files import DiskFull, no_space, write_atomic
    from core.spread.launch import Models, run_of
    from core.stages.training import train_model
    from eval.errors import ReproError
    from eval.terminal import say

    place = Path(folder)
    try:
        chosen = Models(**json.loads(models))
        with no_space(place):
            outputs = train_model(run_of(*arguments), int(seed), chosen, Path(data), place)
    except ReproError as error:
        try:
            write_atomic(place / FAILED, Exception.__str__(error))
        except DiskFull:
            say(str(error))  # whoever launched this has the last line
        sys.exit(error.exit_code)
    if outputs:
        write_atomic(place / OUTPUTS, json.dumps(outputs))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main(*sys.argv[1:])
