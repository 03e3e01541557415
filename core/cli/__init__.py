"""The command line, one module for each group of commands.

Importing it makes Ctrl-C quiet and pins the kernels, before the module of a command loads torch.
"""

from core.cli.interrupts import exit_on_interrupt

exit_on_interrupt()

from core.stages.kernels import pin_kernels  # noqa: E402 - Ctrl-C may come while it is imported

pin_kernels()
