"""The fork server of a sandbox: every program runs in a fresh copy of a warm interpreter.

The server reads a program as one line of JSON and answers with one line of JSON. Before it answers,
the processes of the program are ended and its folder is emptied. Programs can access neither the
descriptors nor the memory of the server, so programs cannot affect each other.
"""

import base64
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from io import TextIOWrapper
from types import ModuleType
from typing import BinaryIO, TextIO

from eval.sandbox.inside import kernel
from eval.sandbox.inside.folder import empty_folder, files_in
from eval.sandbox.inside.processes import end_program, threads_of
from eval.sandbox.inside.program import Confinement, Settings, run_program

WARM = (  # imported and used once, for all programs
    "import numpy",
    "import sympy; x = sympy.Symbol('x'); sympy.solve(x**2 - 2); sympy.simplify(x + sympy.sin(x))",
)
SCIPY = ("import scipy.integrate, scipy.optimize, scipy.stats",)  # these import most of scipy
FILES = 1024  # in the folder at most
TICK_S = 0.05  # between two checks of the folder


class Offered(MetaPathFinder):
    """An import finder for the offered packages only, not for others in their folders."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.beside = {os.path.basename(path): os.path.dirname(path) for path in folders}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an offered top-level package, else None.

        The default finder finds the submodules of offered packages.
        """
        beside = self.beside.get(fullname) if path is None else None
        return PathFinder.find_spec(fullname, [beside], target) if beside else None


def serve(settings: Settings) -> None:
    """Run programs from standard input until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # process 1 ignores them
    sys.meta_path.append(Offered(settings.packages))
    sys.argv = [""]
    for line in (*WARM, *(SCIPY if settings.scipy else ())):
        with suppress(ImportError):
            exec(line, {})
    confined = confine(settings)
    gc.collect()
    kernel.use_huge_pages(map(id, gc.get_objects()))
    gc.freeze()  # garbage collection in a child then copies no shared page
    requests, answers = standard_streams()
    print('"ready"', file=answers, flush=True)
    for line in requests:
        outcome = execute(json.loads(line), settings, confined, requests.fileno())
        outcome["last"] = not empty_folder(settings.folder)
        print(json.dumps(outcome), file=answers, flush=True)
        if outcome["last"]:
            break
    os._exit(0)


def standard_streams() -> tuple[BinaryIO, TextIO]:
    """Move the requests and answers off descriptors 0 to 2, which programs use, and return them."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        # flushed by line, so that output before a forced end is kept
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(line_buffering=True, errors="replace")
    return requests, answers


def confine(settings: Settings) -> Confinement:
    """Drop privileges and return the confinement for programs."""
    os.chmod(settings.folder, 0o700)
    if settings.uid is not None:
        os.chown(settings.folder, settings.uid, settings.uid)
    kernel.drop_privileges(settings.uid)
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)  # the change of user has cleared it
    kernel.prctl(kernel.SUBREAPER, 1)
    if not os.access(os.__file__, os.R_OK):
        sys.exit(f"the interpreter's {os.__file__} can only be read by root")
    rules = kernel.landlock_rules(settings.readable, settings.folder)
    return Confinement(rules, base64.b64decode(settings.filter), threads_of(os.getuid()))


def execute(source: str, settings: Settings, confined: Confinement, host: int) -> dict[str, object]:
    """Run one program and return its output, error and status."""
    os.utime(settings.folder)  # hides the times of earlier programs
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    deadline = time.monotonic() + settings.timeout_s
    pid = os.fork()
    if not pid:
        try:
            run_program(source, settings, confined, out_end, err_end)
        finally:  # the child must not return to the server's loop
            os._exit(1)
    os.close(out_end)
    os.close(err_end)
    outputs = {out: bytearray(), err: bytearray()}
    reason = collect_output(pid, host, outputs, deadline, settings)
    status = end_program(pid)
    for file, text in outputs.items():
        drain(file, text, settings.output_bytes)
        os.close(file)
    output, errors = (
        text[: settings.output_bytes].decode(errors="replace") for text in outputs.values()
    )
    how, error = verdict(reason, status, errors, settings)
    return {"output": output, "error": error, "status": how}


def collect_output(
    pid: int, host: int, outputs: dict[int, bytearray], deadline: float, settings: Settings
) -> str:
    """Collect output until the program ends or must be ended; return the reason or ""."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    for file in (host, handle, *outputs):
        poll.register(file, select.POLLIN)
    try:
        while (remaining_s := deadline - time.monotonic()) > 0:
            events = {file for file, _ in poll.poll(min(remaining_s, TICK_S) * 1000)}
            if host in events:  # the host has ended
                end_program(pid)
                os._exit(0)
            for file in events & outputs.keys():
                if not read_chunk(file, outputs[file]):
                    poll.unregister(file)
            if max(map(len, outputs.values())) > settings.output_bytes:
                return f"more than {settings.output_bytes} bytes of output"
            if handle in events:
                return ""
            if files_in(settings.folder) > FILES:
                return f"more than {FILES} files"
        return "timeout"
    finally:
        os.close(handle)


def read_chunk(file: int, text: bytearray) -> bool:
    """Append the available output of a pipe to `text`; return whether there was any."""
    chunk = os.read(file, 65536)
    text += chunk
    return bool(chunk)


def verdict(reason: str, status: int, errors: str, settings: Settings) -> tuple[str, str]:
    """Return the status and error of a program from the reason of its end and its exit status."""
    if reason == "timeout":
        return "timeout", f"no end within {settings.timeout_s:g} s"
    if reason:
        return "killed", reason
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return "killed", f"ended by signal {-code} ({signal.strsignal(-code)})"
    return ("error", errors or f"exit status {code}") if code else ("ok", "")


def drain(file: int, text: bytearray, max_bytes: int) -> None:
    """Read the rest of a pipe without blocking, until `text` is longer than `max_bytes`."""
    os.set_blocking(file, False)
    with suppress(BlockingIOError):
        while len(text) <= max_bytes and (chunk := os.read(file, 65536)):
            text += chunk


def main() -> None:
    """Run `server SETTINGS`: serve in the confinement that the caller has built."""
    serve(Settings(**json.loads(sys.argv[1])))
