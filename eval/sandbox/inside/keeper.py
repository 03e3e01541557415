"""The parent process of a plain sandbox; it removes the folder once sandbox or host has ended."""

import json
import os
import select
import shutil
import signal
import sys

from eval.sandbox.inside import kernel
from eval.sandbox.inside.processes import end_program
from eval.sandbox.inside.program import Settings

PATIENCE_MS = 2000  # after the end of its input, for the server to end by itself


def main() -> None:
    """Run `keeper SETTINGS`: serve in a child process, then end it and remove its folder."""
    settings = Settings(**json.loads(sys.argv[1]))
    kernel.prctl(kernel.SUBREAPER, 1)  # orphans of the server become children of this process
    server = os.fork()
    if not server:
        from eval.sandbox.inside.server import serve

        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
        serve(settings)
    handle = os.pidfd_open(server)
    poll = select.poll()
    poll.register(0, 0)  # only its end; the server reads its content
    poll.register(handle, select.POLLIN)
    poll.poll()
    poll.unregister(0)
    poll.poll(PATIENCE_MS)
    end_program(server)
    shutil.rmtree(settings.folder, ignore_errors=True)
    os._exit(0)
