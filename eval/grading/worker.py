"""Compares answers in a child process with its own deadline, so that no text can hang the caller.

The child is a fresh interpreter that speaks JSON lines: it runs no `__main__` again, shares no
lock with the caller's threads, and needs no signal in them. It imports the parsers once and lets
a fork of itself answer, which a kernel timer ends even inside C code; the next fork takes
milliseconds. The deadline is processor time, so a busy machine changes no verdict.
"""

import atexit
import ctypes
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal  # each rule set has answers of its own type

CPU_S = 2  # processor time for one comparison; the slowest pair of MATH takes a tenth of it
WALL_S = 120.0  # a stopped child, or a machine that is far too busy
MEMORY = 3 * 2**30
WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
ROOT = str(Path(__file__).resolve().parents[2])
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from eval.grading.worker import serve; serve()"

Outcome = bool | Literal["timeout", "error"]
Answers = str | list[str]  # one answer, or for the paper's rules all of them


def serve() -> None:
    """Let forks answer one request a line until the input ends; a new one after each that died."""
    import resource
    import signal

    from eval.grading.paper_symbolic import compare_as_paper
    from eval.grading.symbolic import compare
    from eval.grading.whole_text import compare_texts

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints can become an answer
    rules: dict[str, Any] = {
        "strict": compare,
        "paper": compare_as_paper,
        "texts": compare_texts,
    }
    rules["strict"](r"\sqrt{4}", "2 + 0")  # everything is imported before the first deadline
    rules["paper"]([r"\sqrt{4}"], ["2 + 0"])
    rules["texts"](r"$\sqrt{4}$", r"\boxed{2 + 0}")
    print("ready", file=answers, flush=True)
    while True:
        child = os.fork()
        if child == 0:
            answer_requests(rules, answers)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended == 0:
            return
        outcome = "timeout" if ended == -signal.SIGPROF else "error"
        print(json.dumps(outcome), file=answers, flush=True)


def answer_requests(rules: dict[str, Any], answers: Any) -> None:
    """One outcome for each request line; SIGPROF ends the process at the deadline."""
    end_after = cpu_timer()
    requests = os.fdopen(0, "rb", buffering=0)  # takes no byte of a next request
    while line := requests.readline():
        end_after(CPU_S)
        try:
            name, gold, given = json.loads(line)
            outcome = rules[name](gold, given)
        except Exception:  # a text that the parsers choke on; the caller counts it as undecided
            outcome = "error"
        end_after(0)
        print(json.dumps(outcome), file=answers, flush=True)


def cpu_timer() -> Callable[[int], object]:
    """A function that sends SIGPROF after so many seconds of this process's time; 0 takes it back.

    Linux counts it exactly. `setitimer` counts whoever runs at a tick of the clock: beside
    processes that sleep and wake many times between two ticks, its 2 s were 1.3 to 2.0.
    """
    import signal

    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    create = getattr(libc, "timer_create", None)  # not on every system
    event = struct.pack("Pii48x", 0, signal.SIGPROF, 0)
    if create is None or create(time.CLOCK_PROCESS_CPUTIME_ID, event, ctypes.byref(timer)):
        return lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    # struct itimerspec: no repetition, then seconds and nanoseconds
    return lambda seconds: libc.timer_settime(timer, 0, struct.pack("llll", 0, 0, seconds, 0), None)


class Worker:
    """One child process, started when first needed and again after it had to end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def compare(self, rules: str, gold: Answers, given: Answers) -> Any:
        """The child's verdict; `timeout` when it ran out of time, `error` when it ended."""
        with self.lock:
            try:
                process = self.process or self.start()
                request = json.dumps([rules, gold, given]).encode() + b"\n"
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


def ask_all(pairs: Sequence[tuple[Answers, Answers]], rules: str) -> list[Any]:
    """What the rules say of each pair, in order, or `timeout` or `error`."""
    if len(pairs) < 8 or len(POOL) == 1:
        return [POOL[0].compare(rules, *pair) for pair in pairs]
    outcomes: list[Any] = [False] * len(pairs)

    def share(start: int) -> None:
        for i in range(start, len(pairs), len(POOL)):
            outcomes[i] = POOL[start].compare(rules, *pairs[i])

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
