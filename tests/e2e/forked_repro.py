"""A program `repro` whose commands run in forks of a server that has imported torch.

The program sends its arguments, environment, working directory and standard streams to the server.
A fork runs the command with them as a new process would, without the seconds of the imports.
"""

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from multiprocessing import forkserver, resource_tracker, util
from unittest.mock import patch

IMPORTS = (
    "core.cli.main",
    "core.run.order",
    "core.pages.render",
    "core.stages.record",
    "core.trainers.grpo",
    "eval.stats.comparisons",
    "transformers.models.llama.modeling_llama",
)
LENGTH = 8  # bytes of the length of a request
PROGRAM = f"""#!{sys.executable} -IS
import json, os, socket, sys
request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({{path!r}})
    socket.send_fds(server, [len(request).to_bytes({LENGTH}, "big")], [0, 1, 2])
    server.sendall(request)
    code = server.recv(9)
sys.exit(int(code) if code else "the server died")
"""


def write_program(folder, path):
    """Write the program for the server at a socket path, and return its file."""
    program = folder / "repro"
    program.write_text(PROGRAM.format(path=str(path)))
    program.chmod(0o755)
    return program


def serve(path):
    """Answer requests at a socket path, each in a fork, until the parent process ends."""
    del sys.path[0]  # the folder of this file
    for name in IMPORTS:
        import_module(name)
    from core.spread.pool import die_with_parent
    from core.stages.kernels import KERNELS

    die_with_parent()
    pinned = {name: os.environ[name] for name in KERNELS if name in os.environ}
    gc.collect()
    gc.freeze()  # forks share these objects, and no collection copies their pages
    start_jobs(die_with_parent)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            if os.fork() == 0:
                answer(client, pinned)
            client.close()


def start_jobs(die_with_parent):
    """Start multiprocessing's server, which the jobs of all commands are forked from, as a fork.

    Otherwise each command with jobs starts one, which imports torch again.
    """

    def fork(_program, _arguments, descriptors):
        child = os.fork()
        if child == 0:
            die_with_parent()
            forkserver.main(*descriptors, preload=[])
        return child

    server = forkserver._forkserver
    resource_tracker.ensure_running()
    with patch.object(util, "spawnv_passfds", fork):
        server.ensure_running()
    server.ensure_running = lambda: None  # a command would take it for a child of its own


def answer(client, pinned):
    """Run the command of a request in a fork, and send its exit code."""
    length, streams, *_ = socket.recv_fds(client, LENGTH, 3)
    with client.makefile("rb") as sent:
        arguments, folder, environment = json.loads(sent.read(int.from_bytes(length, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        run(arguments, folder, pinned | environment, streams)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def run(arguments, folder, environment, streams):
    """Run a command with this environment and these streams in a folder, and exit with its code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["repro", *arguments]
    from core.cli.main import app

    sys.exit(app())


if __name__ == "__main__":
    serve(sys.argv[1])
