"""The parent of a plain sandbox: removes its folder when it has ended, or its host has."""

import json
import os
import select
import shutil
import signal
import sys

from eval.sandbox.inside import kernel
from eval.sandbox.inside.processes import ended
from eval.sandbox.inside.program import Settings

PATIENCE_MS = 2000  # after the end of its input, for the server to end by itself


def main() -> None:
    """`keeper SETTINGS`: serve in a child, and stay until there is nothing left to tidy."""
    settings = Settings(**json.loads(sys.argv[1]))
    kernel.prctl(kernel.SUBREAPER, 1)  # what the server leaves comes here
    server = os.fork()
    if not server:
        from eval.sandbox.inside.server import serve

        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
        serve(settings)
    handle = os.pidfd_open(server)
    poll = select.poll()
    poll.register(0, 0)  # its end alone: what is in it is for the server
    poll.register(handle, select.POLLIN)
    poll.poll()
    poll.unregister(0)
    poll.poll(PATIENCE_MS)
    ended(server)
    shutil.rmtree(settings.folder, ignore_errors=True)
    os._exit(0)
