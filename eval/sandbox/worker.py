"""A sandbox process, seen from its host: started on demand, ended if it does not answer."""

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

START_S = 60.0  # for imports on a busy machine
GRACE_S = 0.7  # beyond a program's own limit, before a sandbox counts as unresponsive
TICK_S = 0.05  # between two checks of a program's memory
PATIENCE_S = 3.0  # between the end of its input and its kill
ANSWER_BYTES = 8  # an answer's size per byte of output: JSON escapes, output and error


class SandboxUnavailable(ReproError, RuntimeError):
    """Raised if a sandbox of the requested kind cannot be started here."""


@dataclass(frozen=True)
class Execution:
    """The outcome of a program: its capped output, its error (empty on success) and its status.

    `status` is `ok`, `error` (an exception or an exit status other than 0), `timeout`, or `killed`
    (a signal, too much output, too many files). `seconds` is the wall time until all processes of
    the program had ended, measured by the host.
    """

    output: str
    error: str
    status: str
    seconds: float


class Worker:
    """A sandbox for one program at a time.

    `command` returns the command line that starts it with given settings. If the settings name no
    folder for programs, a temporary folder of the host is used.
    """

    def __init__(self, command: Callable[[Settings], list[str]], settings: Settings) -> None:
        self.command = command
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.watch: MemoryWatch | None = None
        self.folder = ""
        self.closed = False

    def run(self, source: str) -> Execution:
        """Run one program and return its outcome; a sandbox that does not answer is ended.

        Raises:
            SandboxUnavailable: the worker cannot be started.
        """
        process = self.process or self.start()
        start_s = time.monotonic()
        max_bytes = ANSWER_BYTES * (self.settings.output_bytes + 2**16)
        wall_s = self.settings.timeout_s + GRACE_S
        line = json.dumps(source).encode() + b"\n"
        answer, too_large = exchange(process, line, wall_s, max_bytes, self.watch)
        try:
            outcome = json.loads(answer)
            last = outcome.pop("last")
            if too_large and outcome["status"] == "killed":
                limit = self.settings.memory_bytes
                outcome["error"] = f"more than {limit} bytes of memory in all of its processes"
            execution = Execution(**outcome, seconds=time.monotonic() - start_s)
        except (ValueError, TypeError, KeyError):
            self.stop()
            elapsed_s = time.monotonic() - start_s
            is_late = elapsed_s >= self.settings.timeout_s
            return Execution(
                "", "the sandbox had to be ended", "timeout" if is_late else "killed", elapsed_s
            )
        if last:
            self.stop()
        return execution

    def start(self) -> subprocess.Popen[bytes]:
        """Start the sandbox and wait until its packages are imported.

        Raises:
            SandboxUnavailable: it did not start; the message is its last line on standard error.
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
                lines = errors.read(2**14).decode(errors="replace").strip().splitlines()
                raise SandboxUnavailable(lines[-1] if lines else "it ended without a word")
        self.watch = MemoryWatch(process.pid, settings.memory_bytes)
        return process

    def end(self, patience_s: float) -> None:
        """End the sandbox and its programs: close its input, and kill it after `patience_s`."""
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
        """End the sandbox at once and remove its folder."""
        self.end(0)
        process, self.process = self.process, None
        if process is not None:
            assert process.stdout is not None
            process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """End the sandbox for good: its program is killed, and no other one is accepted."""
        self.closed = True
        self.end(PATIENCE_S)


def environment(folder: str) -> dict[str, str]:
    """Return the environment variables of the sandbox. None of the host's are inherited."""
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
    max_bytes: int,
    watch: MemoryWatch | None = None,
) -> tuple[bytes, bool]:
    """Send a line and read the answer until its newline, the end of the process or the deadline.

    Args:
        process: The sandbox.
        request: The line that is sent.
        wall_s: Seconds until the deadline.
        max_bytes: Reading stops after this many bytes.
        watch: The memory limit that is enforced while waiting.

    Returns:
        The bytes read, and whether `watch` ended the program.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + wall_s
    with suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    answer, file, exceeded = b"", process.stdout.fileno(), False
    while not answer.endswith(b"\n") and len(answer) < max_bytes:
        remaining_s = deadline - time.monotonic()
        ready, _, _ = select.select([file], [], [], max(0.0, min(remaining_s, TICK_S)))
        if not ready and remaining_s > 0:
            exceeded |= watch is not None and watch.enforce()
            continue
        chunk = os.read(file, 2**16) if ready else b""
        if not chunk:
            break
        answer += chunk
    return answer, exceeded
