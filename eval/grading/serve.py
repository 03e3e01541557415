"""The child process that compares answers; `eval.grading.worker` starts it and asks it.

It imports the parsers once and lets a fork of itself answer, which a kernel timer ends even inside
C code; the next fork takes milliseconds. The deadline is processor time, so a busy machine changes
no verdict.
"""

import ctypes
import json
import os
import resource
import signal
import struct
import time
from collections.abc import Callable
from typing import Any  # each rule set has answers of its own type

from eval.grading.paper_symbolic import compare_as_paper
from eval.grading.symbolic import compare
from eval.grading.whole_text import compare_texts

CPU_S = 2  # processor time for one comparison; the slowest pair of MATH takes a tenth of it
MEMORY = 3 * 2**30


def serve() -> None:
    """Let forks answer one request a line until the input ends; a new one after each that died."""
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
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    create = getattr(libc, "timer_create", None)  # not on every system
    event = struct.pack("Pii48x", 0, signal.SIGPROF, 0)
    if create is None or create(time.CLOCK_PROCESS_CPUTIME_ID, event, ctypes.byref(timer)):
        return lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    # struct itimerspec: no repetition, then seconds and nanoseconds
    return lambda seconds: libc.timer_settime(timer, 0, struct.pack("llll", 0, 0, seconds, 0), None)
