"""`accelerate launch`, less its tracebacks: a process that fails has said why itself."""

import os
import sys
from importlib import import_module
from typing import Any

from core.run.pool import die_with_parent


def main() -> None:
    """Start the processes and end with 1 if one of them failed."""
    die_with_parent()
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # torch's launcher, which repeats the failure
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    accelerate: Any = import_module("accelerate.commands.launch")  # Any: it ships no types
    rank = os.environ.get("SLURM_NODEID")
    chosen = ["--machine_rank", rank] if rank and "--num_machines" in sys.argv else []
    arguments = accelerate.launch_command_parser().parse_args([*chosen, *sys.argv[1:]])
    try:
        accelerate.launch_command(arguments)
    except (ChildFailedError, SignalException):
        sys.exit(1)


if __name__ == "__main__":
    main()
