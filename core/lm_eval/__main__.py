"""lm-eval's command line with `--model repro` and our tasks: `python -m core.lm_eval run ...`.

lm-eval finds only models that its own process has registered, so this module imports ours first.
"""

# ruff: noqa: E402 - the kernels are chosen before any import can load torch
from core.stages.kernels import pin_kernels

pin_kernels()

import sys
from importlib.resources import files

from lm_eval.__main__ import cli_evaluate

from core.lm_eval import model  # noqa: F401 - registers `repro`
from eval.errors import ReproError
from eval.terminal import say, visible_messages

if __name__ == "__main__":
    if not any(argument.startswith("--include_path") for argument in sys.argv):
        sys.argv += ["--include_path", str(files("eval.lm_tasks"))]
    try:
        with visible_messages():
            cli_evaluate()
    except ReproError as error:
        say(str(error))
        sys.exit(error.exit_code)
