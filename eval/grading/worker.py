"""Grades in a child process with its own deadline, so that no text can hang the caller.

The child, `eval.grading.serve`, is a fresh interpreter that speaks JSON lines: it runs no
`__main__` again, shares no lock with the caller's threads, and needs no signal in them.
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
from typing import Any, Literal  # each rule set has answers of its own type

CPU_S = 2  # processor time for one text or pair; the slowest pair of MATH takes a tenth of it
WALL_S = 120.0  # a stopped child, or a machine that is far too busy
WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
ROOT = str(Path(__file__).resolve().parents[2])
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from eval.grading.serve import serve; serve()"

Outcome = bool | Literal["timeout", "error"]
Answers = str | list[str]  # one answer, or for the paper's rules all of them


class Worker:
    """One child process, started when first needed and again after it had to end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, rules: str, arguments: Sequence[Any]) -> Any:
        """Return what the child's rules say; `timeout` if time ran out, `error` if it ended."""
        with self.lock:
            try:
                process = self.process or self.start()
                request = json.dumps([rules, *arguments], default=asdict).encode() + b"\n"
                answer = exchange(process, request, WALL_S)
            except BaseException:  # Ctrl-C, say: a late answer would be taken for the next one's
                self.stop()
                raise
            if answer is not None:
                return json.loads(answer)
            return "timeout" if self.stop() == -9 else "error"  # killed here, or ended before

    def start(self) -> subprocess.Popen[bytes]:
        """Start the child and wait until it has imported its parsers."""
        process = subprocess.Popen(
            # -P: where we are there may be modules of the names of ours, or of Python's
            [sys.executable, "-P", "-c", BOOT, ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the caller's to handle
        )
        self.process = process
        if exchange(process, b"", WALL_S) is None:
            self.stop()
            raise RuntimeError(f"the grading worker did not start: {sys.executable} -c ... {ROOT}")
        return process

    def stop(self) -> int | None:
        """End the child, if it still runs, and give its exit status."""
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
    """Send a line and read one; None when the child ended or was too slow."""
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
    """The verdict of the rules on each (gold, given), in order; callable from any thread."""
    return ask_all(pairs, rules)


def ask_all(items: Sequence[Sequence[Any]], rules: str) -> list[Any]:
    """Return what the rules say of each item's arguments, in order, or `timeout` or `error`."""
    if len(items) < 8 or len(POOL) == 1:
        return [POOL[0].ask(rules, item) for item in items]
    outcomes: list[Any] = [False] * len(items)

    def share(start: int) -> None:
        for i in range(start, len(items), len(POOL)):
            outcomes[i] = POOL[start].ask(rules, items[i])

    with ThreadPoolExecutor(len(POOL)) as threads:
        list(threads.map(share, range(len(POOL))))
    return outcomes


def forget() -> None:
    """In a forked child: the parent's processes are not ours to talk to."""
    POOL[:] = [Worker() for _ in range(WORKERS)]


def stop() -> None:
    """End all children when the program ends."""
    for worker in POOL:
        worker.stop()


atexit.register(stop)
os.register_at_fork(after_in_child=forget)
