"""One sandbox process as its host sees it: started when needed, ended when it does not answer."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile, mkdtemp

from eval.errors import ReproError
from eval.sandbox.inside.processes import end_tree
from eval.sandbox.inside.program import Settings
from eval.sandbox.memory_watch import MemoryWatch

START_S = 60.0  # imports on a busy machine
GRACE_S = 0.7  # after a program's own limit, for a sandbox that does not answer
TICK_S = 0.05  # between two looks at a program's memory
PATIENCE_S = 3.0  # after the end of its input, until it is killed
ANSWER_BYTES = 8  # an answer's size per byte of output: JSON escapes, output and error


class SandboxUnavailable(ReproError, RuntimeError):
    """No sandbox of the wanted kind can be started here."""


@dataclass(frozen=True)
class Execution:
    """What a program printed (capped), why it failed (empty when it did not), and how it ended.

    `status` is `ok`, `error` (it raised or gave another exit status than 0), `timeout`, or `killed`
    (a signal, too much output, too many files). `seconds` is wall time until all of it
    had ended, as the host saw it.
    """

    output: str
    error: str
    status: str
    seconds: float


class Worker:
    """One sandbox, for one program at a time.

    `command` makes the command line that starts it from settings; where these name no folder for
    the programs, it is one of the host.
    """

    def __init__(self, command: Callable[[Settings], list[str]], settings: Settings) -> None:
        self.command = command
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.watch: MemoryWatch | None = None
        self.folder = ""
        self.closed = False

    def run(self, source: str) -> Execution:
        """Run one program."""
        process = self.process or self.start()
        began = time.monotonic()
        most = ANSWER_BYTES * (self.settings.output_bytes + 2**16)
        wall_s = self.settings.timeout_s + GRACE_S
        line = json.dumps(source).encode() + b"\n"
        answer, too_large = exchange(process, line, wall_s, most, self.watch)
        try:
            found = json.loads(answer)
            last = found.pop("last")
            if too_large and found["status"] == "killed":
                limit = self.settings.memory_bytes
                found["error"] = f"more than {limit} bytes of memory in all of its processes"
            done = Execution(**found, seconds=time.monotonic() - began)
        except (ValueError, TypeError, KeyError):
            self.stop()
            took = time.monotonic() - began
            late = took >= self.settings.timeout_s
            return Execution(
                "", "the sandbox had to be ended", "timeout" if late else "killed", took
            )
        if last:
            self.stop()
        return done

    def start(self) -> subprocess.Popen[bytes]:
        """Start the sandbox and wait until its packages are imported.

        Raises:
            SandboxUnavailable: with what it said on standard error.
        """
        if self.closed:
            raise SandboxUnavailable("it has been closed")
        self.folder = "" if self.settings.folder else mkdtemp(prefix="repro-sandbox-")
        settings = replace(self.settings, folder=self.settings.folder or self.folder)
        with TemporaryFile() as errors:
            process = subprocess.Popen(
                self.command(settings),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(settings.folder),
                cwd="/",
                start_new_session=True,
            )
            self.process = process
            if exchange(process, b"", START_S, 2**10)[0] != b'"ready"\n':
                self.stop()
                errors.seek(0)
                said = errors.read(2**14).decode(errors="replace").strip().splitlines()
                raise SandboxUnavailable(said[-1] if said else "it ended without a word")
        self.watch = MemoryWatch(process.pid, settings.memory_bytes)
        return process

    def end(self, patience_s: float) -> None:
        """End the sandbox and whatever runs in it: by the end of its input, then by force."""
        process = self.process
        if process is not None:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                end_tree(process.pid)
                process.wait()

    def stop(self) -> None:
        """End the sandbox and remove what it had."""
        self.end(0)
        process, self.process = self.process, None
        if process is not None:
            assert process.stdout is not None
            process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """End the sandbox for good; what it runs is killed, and no other program is taken."""
        self.closed = True
        self.end(PATIENCE_S)


def environment(folder: str) -> dict[str, str]:
    """All that a sandbox knows of the environment; nothing of the host's is handed on."""
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",  # the same program prints its sets in the same order
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def exchange(
    process: subprocess.Popen[bytes],
    request: bytes,
    wall_s: float,
    most: int,
    watch: MemoryWatch | None = None,
) -> tuple[bytes, bool]:
    """Send a line and read one, or what came of it until the process ended or time was up.

    Also whether what `watch` sees has been ended meanwhile.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + wall_s
    with suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    answer, file, exceeded = b"", process.stdout.fileno(), False
    while not answer.endswith(b"\n") and len(answer) < most:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([file], [], [], max(0.0, min(left, TICK_S)))
        if not ready and left > 0:
            exceeded |= watch is not None and watch.exceeded()
            continue
        chunk = os.read(file, 2**16) if ready else b""
        if not chunk:
            break
        answer += chunk
    return answer, exceeded
