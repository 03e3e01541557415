"""Runs grading rules in child processes with a deadline, so that no text can hang the caller.

A child, `eval.grading.serve`, is a fresh interpreter that reads and writes JSON lines: it does not
run `__main__` again, shares no lock with the caller's threads, and needs no signal in them.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

CPU_S = 2  # processor time for one text or pair; the slowest pair of MATH takes a tenth of it
WALL_S = 120.0  # exceeded only by a stopped child or on an overloaded machine
WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
ROOT = str(Path(__file__).resolve().parents[2])
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from eval.grading.serve import serve; serve()"

Json: TypeAlias = Any  # Any: JSON of a rule, each of which has results of its own type
Outcome = bool | Literal["timeout", "error"]
Answers = str | list[str]  # one answer, or all of them by the paper's rules


class Worker:
    """A child process, started on first use and again after it ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, rule: str, arguments: Sequence[object]) -> Json:
        """Return the child's result of a rule; "timeout" if time ran out, "error" if it ended."""
        with self.lock:
            try:
                process = self.process or self.start()
                request = json.dumps([rule, *arguments], default=asdict).encode() + b"\n"
                answer = exchange(process, request, WALL_S)
            except BaseException:  # such as Ctrl-C: a late answer would answer the next request
                self.stop()
                raise
            if answer is not None:
                return json.loads(answer)
            return "timeout" if self.stop() == -9 else "error"  # killed here, or ended before

    def start(self) -> subprocess.Popen[bytes]:
        """Start the child and wait until it has imported its parsers.

        Raises:
            RuntimeError: the child did not start.
        """
        process = subprocess.Popen(
            # -P: the working folder may have modules named as ours or as Python's
            [sys.executable, "-P", "-c", BOOT, ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is left to the caller
        )
        self.process = process
        if exchange(process, b"", WALL_S) is None:
            self.stop()
            raise RuntimeError(f"the grading worker did not start: {sys.executable} -c ... {ROOT}")
        return process

    def stop(self) -> int | None:
        """End the child and return its exit status; None if it was not started."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # a request that never reached the child
                assert pipe is not None
                pipe.close()
        return process.wait()


def exchange(process: subprocess.Popen[bytes], request: bytes, wall_s: float) -> bytes | None:
    """Write a line to a process and return the line it answers; None if it ended or was too slow.

    `wall_s` is the limit in seconds.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    ready, _, _ = select.select([process.stdout], [], [], wall_s)
    return (process.stdout.readline() or None) if ready else None


POOL = [Worker() for _ in range(WORKERS)]


def compare_all(
    pairs: Sequence[tuple[Answers, Answers]], *, rules: Literal["strict", "paper"] = "strict"
) -> list[Outcome]:
    """Return whether the answers of each (gold, prediction) are equal; callable from any thread."""
    return ask_all(pairs, rules)


def ask_all(items: Sequence[Sequence[object]], rule: str) -> list[Json]:
    """Return the result of a rule for each item's arguments, in order, or "timeout" or "error"."""
    if len(items) < 8 or len(POOL) == 1:
        return [POOL[0].ask(rule, item) for item in items]
    outcomes: list[Json] = [False] * len(items)

    def ask_share(start: int) -> None:
        for i in range(start, len(items), len(POOL)):
            outcomes[i] = POOL[start].ask(rule, items[i])

    with ThreadPoolExecutor(len(POOL)) as threads:
        list(threads.map(ask_share, range(len(POOL))))
    return outcomes


def forget() -> None:
    """Replace the workers in a forked child, which must not use the parent's processes."""
    POOL[:] = [Worker() for _ in range(WORKERS)]


def stop() -> None:
    """End all child processes when the program ends."""
    for worker in POOL:
        worker.stop()


atexit.register(stop)
os.register_at_fork(after_in_child=forget)
