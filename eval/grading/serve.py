"""The child process that grades; `eval.grading.worker` starts it and sends it requests.

It imports the parsers once and lets a fork of itself answer. A kernel timer ends the fork at its
deadline, even inside C code; the next fork takes milliseconds. The deadline is processor time, so a
busy machine changes no verdict.
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
from typing import TextIO

from eval.grading.extraction import extract
from eval.grading.judge import compare_without_parser
from eval.grading.official import official_fields
from eval.grading.paper_rules import read_as_paper
from eval.grading.paper_symbolic import compare_as_paper
from eval.grading.symbolic import compare
from eval.grading.verdict import Extraction
from eval.grading.whole_text import compare_outputs, compare_texts
from eval.grading.worker import CPU_S, Json
from eval.grading.written import written_alike
from eval.sets.problem import Answers

MEMORY = 3 * 2**30  # bytes
Rule = Callable[..., object]


def serve() -> None:
    """Answer one request a line until the input ends, in a fork that is replaced if it dies."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints can become an answer
    named_rules = (compare_without_parser, read_as_paper, official_fields, written_alike)
    rules: dict[str, Rule] = {
        "strict": compare,
        "paper": compare_as_paper,
        "texts": compare_texts,
        "outputs": compare_outputs,
        **{rule.__name__: rule for rule in named_rules},
        "extract": extract_for,
    }
    rules["strict"](r"\sqrt{4}", "2 + 0")  # imports everything before the first deadline
    rules["paper"]([r"\sqrt{4}"], ["2 + 0"])
    rules["texts"](r"$\sqrt{4}$", r"\boxed{2 + 0}")
    print("ready", file=answers, flush=True)
    while True:
        child = os.fork()
        if child == 0:
            answer_requests(rules, answers)
            os._exit(0)
        exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if exit_code == 0:
            return
        outcome = "timeout" if exit_code == -signal.SIGPROF else "error"
        print(json.dumps(outcome), file=answers, flush=True)


def answer_requests(rules: dict[str, Rule], answers: TextIO) -> None:
    """Print one outcome for each request line; SIGPROF ends the process at the deadline."""
    end_after = cpu_timer()
    requests = os.fdopen(0, "rb", buffering=0)  # unbuffered: never reads into a next request
    while line := requests.readline():
        end_after(CPU_S)
        try:
            name, *arguments = json.loads(line)
            outcome = rules[name](*arguments)
        except Exception:  # a text that the parsers fail on; the caller counts it as undecided
            outcome = "error"
        end_after(0)
        print(json.dumps(outcome, default=asdict), file=answers, flush=True)


def extract_for(output: str, language: str, answers: Json) -> Extraction:
    """Extract the answer of an output; `answers` are the fields of `Answers`."""
    return extract(output, language, Answers(**answers))


def cpu_timer() -> Callable[[float], object]:
    """Return a function that sends SIGPROF after a number of processor seconds; 0 cancels it.

    Linux counts the time of a POSIX timer exactly. `setitimer` counts the process that runs at a
    tick of the clock: beside processes that sleep and wake many times between two ticks, its 2 s
    were 1.3 to 2.0 s.
    """
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    create = getattr(libc, "timer_create", None)  # not on every system
    event = struct.pack("Pii48x", 0, signal.SIGPROF, 0)
    if create is None or create(time.CLOCK_PROCESS_CPUTIME_ID, event, ctypes.byref(timer)):
        return lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)

    def end_after(seconds: float) -> object:
        whole = int(seconds)
        # struct itimerspec: no repetition, then seconds and nanoseconds
        value = struct.pack("llll", 0, 0, whole, round((seconds - whole) * 1e9))
        return libc.timer_settime(timer, 0, value, None)

    return end_after
