"""The command line: one module per group of verbs.

Ctrl-C is quiet from here on, and the kernels are pinned before any module of a command can load
torch.
"""

from core.cli.interrupts import exit_on_interrupt

exit_on_interrupt()

from core.stages.kernels import pin_kernels  # noqa: E402 - Ctrl-C may come while it is imported

pin_kernels()
