"""One process of a launch: trains its share, and the first one writes what came of it."""

import json
import os
import sys
from pathlib import Path

from core.run.spread.launcher import FAILED, OUTPUTS
from core.run.spread.pool import die_with_parent


def main(
    slug: str, scale: str, arm: str, seed: str, models: str, data: str, folder: str, *rest: str
) -> None:
    """Train; a user's error is left in the folder, for one line of whoever launched this."""
    die_with_parent()  # before the seconds that these take
    import torch

    from core.paper.registry import find_paper
    from core.run.files import DiskFull, no_space, write_atomic
    from core.run.resolve import resolve
    from core.run.spread.launch import Models
    from core.run.stages.train import train_model
    from eval.errors import ReproError

    place = Path(folder)
    try:
        chosen = Models(**json.loads(models))
        resolved = resolve(find_paper(slug), arm=arm, scale=scale, arguments=rest)
        with no_space(place):
            outputs = train_model(resolved, int(seed), chosen, Path(data), place)
    except ReproError as error:
        try:
            write_atomic(place / FAILED, Exception.__str__(error))
        except DiskFull:
            print(error, file=sys.stderr)  # whoever launched this has the last line
        sys.exit(error.exit_code)
    if outputs:
        write_atomic(place / OUTPUTS, json.dumps(outputs))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main(*sys.argv[1:])
