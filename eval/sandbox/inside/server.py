"""The fork server of a sandbox: every program runs in a fresh copy of a warm interpreter.

It reads one JSON text a line (the program) and answers with one JSON object a line. What a program
started is dead, and its folder empty, before the answer is given. Programs can reach neither the
server's descriptors nor its memory, so nothing crosses from one to the next.
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
from eval.sandbox.inside.folder import emptied, files_in
from eval.sandbox.inside.processes import ended, threads_of
from eval.sandbox.inside.program import Confinement, Settings, run_program

WARM = (  # imported and used once, for all programs
    "import numpy",
    "import sympy; x = sympy.Symbol('x'); sympy.solve(x**2 - 2); sympy.simplify(x + sympy.sin(x))",
)
SCIPY = ("import scipy.integrate, scipy.optimize, scipy.stats",)  # these import most of the others
FILES = 1024  # in the folder at once
TICK_S = 0.05  # between two looks at the folder


class Offered(MetaPathFinder):
    """Finds these packages only, whatever else lies beside them."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.beside = {os.path.basename(path): os.path.dirname(path) for path in folders}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A package that is offered; what is in it is then found in the usual way."""
        beside = self.beside.get(fullname) if path is None else None
        return PathFinder.find_spec(fullname, [beside], target) if beside else None


def serve(settings: Settings) -> None:
    """Answer programs until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # as process 1 no program can end it
    sys.meta_path.append(Offered(settings.packages))
    sys.argv = [""]
    for line in (*WARM, *(SCIPY if settings.scipy else ())):
        with suppress(ImportError):
            exec(line, {})
    confined = confine(settings)
    gc.collect()
    kernel.use_huge_pages(map(id, gc.get_objects()))
    gc.freeze()  # a collection in a child copies no page of what is loaded here
    requests, answers = standard_streams()
    print('"ready"', file=answers, flush=True)
    for line in requests:
        outcome = execute(json.loads(line), settings, confined, requests.fileno())
        outcome["last"] = not emptied(settings.folder)
        print(json.dumps(outcome), file=answers, flush=True)
        if outcome["last"]:
            break
    os._exit(0)  # at once: there is nothing to tidy


def standard_streams() -> tuple[BinaryIO, TextIO]:
    """Requests and answers on other descriptors than 0 to 2, which become the programs' own."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        # by the line: what a program printed before it was ended counts
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(line_buffering=True, errors="replace")
    return requests, answers


def confine(settings: Settings) -> Confinement:
    """Give up privileges and prepare what every program is confined by."""
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
    """What one program printed and how it ended."""
    os.utime(settings.folder)  # its times tell nothing of earlier programs
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    deadline = time.monotonic() + settings.timeout_s
    pid = os.fork()
    if not pid:
        try:
            run_program(source, settings, confined, out_end, err_end)
        finally:  # never back into the server's loop
            os._exit(1)
    os.close(out_end)
    os.close(err_end)
    kept = {out: bytearray(), err: bytearray()}
    reason = watched(pid, host, kept, deadline, settings)
    status = ended(pid)
    for file, text in kept.items():
        rest(file, text, settings.output_bytes)
        os.close(file)
    output, errors = (
        text[: settings.output_bytes].decode(errors="replace") for text in kept.values()
    )
    how, error = verdict(reason, status, errors, settings)
    return {"output": output, "error": error, "status": how}


def watched(
    pid: int, host: int, kept: dict[int, bytearray], deadline: float, settings: Settings
) -> str:
    """Collect output until the program ends (empty) or has to be ended (why)."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    for file in (host, handle, *kept):
        poll.register(file, select.POLLIN)
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            events = {file for file, _ in poll.poll(min(left, TICK_S) * 1000)}
            if host in events:  # the host is gone
                ended(pid)
                os._exit(0)
            for file in events & kept.keys():
                chunk = os.read(file, 65536)
                kept[file] += chunk
                if not chunk:
                    poll.unregister(file)
            if any(len(text) > settings.output_bytes for text in kept.values()):
                return f"more than {settings.output_bytes} bytes of output"
            if handle in events:
                return ""
            if files_in(settings.folder) > FILES:
                return f"more than {FILES} files"
    finally:
        os.close(handle)


def verdict(reason: str, status: int, errors: str, settings: Settings) -> tuple[str, str]:
    """Status and error of a program that ended, or was ended, like this."""
    if reason == "timeout":
        return "timeout", f"no end within {settings.timeout_s:g} s"
    if reason:
        return "killed", reason
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return "killed", f"ended by signal {-code} ({signal.strsignal(-code)})"
    return ("error", errors or f"exit status {code}") if code else ("ok", "")


def rest(file: int, text: bytearray, most: int) -> None:
    """Take what is still in a pipe, without waiting."""
    os.set_blocking(file, False)
    with suppress(BlockingIOError):
        while len(text) <= most and (chunk := os.read(file, 65536)):
            text += chunk


def main() -> None:
    """`server SETTINGS`: serve in the confinement that the caller has built."""
    serve(Settings(**json.loads(sys.argv[1])))
