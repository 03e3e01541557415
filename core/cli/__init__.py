"""The command line, one module for each group of commands.

Importing it makes Ctrl-C quiet, garbage collections rarer and pins the kernels, before the module
of a command loads torch.
"""

import gc

from core.cli.interrupts import exit_on_interrupt

gc.set_threshold(20_000)  # torch and transformers make a million objects that stay
exit_on_interrupt()

from core.stages.kernels import pin_kernels  # noqa: E402 - Ctrl-C may come while it is imported

pin_kernels()
