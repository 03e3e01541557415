"""The program `accelerate launch` without its tracebacks, as failed processes print their errors.

A process that a signal ends prints nothing, so the signal is written to a file of the run's folder.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from signal import Signals
from typing import Any

from core.records.files import write_atomic
from core.spread.pool import die_with_parent

ENDED = "ended.txt"
OUTPUTS, FAILED = "outputs.json", "failed.txt"  # what a process leaves there itself


def main(folder: str, *options: str) -> None:
    """Start the processes, and exit with 1 if one of them failed."""
    die_with_parent()
    os.environ["PYTHONSAFEPATH"] = "1"  # what `-P` is to this process, to those that it starts
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # torch's launcher, which repeats the failure
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    accelerate: Any = import_module("accelerate.commands.launch")  # Any: it ships no types
    rank = os.environ.get("SLURM_NODEID")
    chosen = ["--machine_rank", rank] if rank and "--num_machines" in options else []
    arguments = accelerate.launch_command_parser().parse_args([*chosen, *options])
    try:
        accelerate.launch_command(arguments)
    except ChildFailedError as error:
        for process, failure in error.failures.items():
            # SIGTERM is what the others get when one has ended
            if failure.exitcode < 0 and (name := Signals(-failure.exitcode).name) != "SIGTERM":
                write_atomic(Path(folder) / ENDED, f"{name} ended process {process}")
        sys.exit(1)
    except SignalException:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
