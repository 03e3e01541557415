"""The command line, one module for each group of commands.

Importing it makes Ctrl-C quiet, garbage collections rarer and pins the kernels, before the module
of a command loads torch. Closed streams are opened on the null device. Without a terminal,
datasets draw no progress bars.
"""

import gc
import os
import sys

from core.cli.interrupts import exit_on_interrupt
from core.cli.missing_streams import open_missing_streams

gc.set_threshold(20_000)  # torch and transformers make a million objects that stay
exit_on_interrupt()
open_missing_streams()

from core.stages.kernels import pin_kernels  # noqa: E402 - Ctrl-C may come while it is imported

pin_kernels()
if not sys.stderr.isatty():
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
