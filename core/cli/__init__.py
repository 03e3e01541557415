"""The command line: one module per group of verbs.

The kernels are pinned here, before any module of a command can load torch.
"""

from core.run.kernels import pin_kernels

pin_kernels()
