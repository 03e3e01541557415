"""The child process that grades; `eval.grading.worker` starts it and asks it.

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
from dataclasses import asdict
from typing import Any  # each rule set has answers of its own type

from eval.grading.extraction import extract
from eval.grading.judge import quickly
from eval.grading.paper_rules import read_as_paper
from eval.grading.paper_symbolic import compare_as_paper
from eval.grading.symbolic import compare
from eval.grading.verdict import Extraction
from eval.grading.whole_text import compare_outputs, compare_texts
from eval.grading.worker import CPU_S
from eval.grading.written import written_alike
from eval.sets.problem import Answers

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
        "outputs": compare_outputs,
        **{rule.__name__: rule for rule in (quickly, read_as_paper, written_alike)},
        "extract": extract_for,
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
            name, *arguments = json.loads(line)
            outcome = rules[name](*arguments)
        except Exception:  # a text that the parsers choke on; the caller counts it as undecided
            outcome = "error"
        end_after(0)
        print(json.dumps(outcome, default=asdict), file=answers, flush=True)


def extract_for(output: str, language: str, answers: dict[str, Any]) -> Extraction:
    """Extract an output's answer, with the fields of `Answers`."""
    return extract(output, language, Answers(**answers))


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
