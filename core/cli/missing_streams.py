"""Standard streams that the caller of the program closed."""

import os
import sys


def open_missing_streams() -> None:
    """Open standard streams that the caller closed on the null device, also for child processes.

    Without them, the next file that is opened would receive what a library prints.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        stream = open(os.devnull, mode)  # noqa: SIM115 - until the program ends
        try:
            os.fstat(number)
        except OSError:
            os.dup2(stream.fileno(), number)
        setattr(sys, name, stream)
