"""Runs one program in its own process: limits, confinement, traceback and exit status."""

import linecache
import os
import resource
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from math import ceil
from types import ModuleType, TracebackType

from eval.sandbox.inside import kernel

FILE_BYTES = 8 * 2**20
OPEN_FILES = 64
PROCESSES = 32
REPORT = 4000  # characters of a traceback at most
NAME = "<program>"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a sandbox, chosen by its host; `uid` is set if the host runs as root."""

    folder: str
    readable: list[str]
    packages: list[str]
    filter: str  # seccomp instructions in base 64; empty for none
    uid: int | None
    scipy: bool  # imported beforehand, which takes a second and doubles the cost of each program
    timeout_s: float
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Confinement:
    """The confinement prepared by the server: landlock rules, seccomp filter, existing threads."""

    rules: int | None
    filter: bytes
    threads: int


def run_program(source: str, settings: Settings, confined: Confinement, out: int, err: int) -> None:
    """Run `source` as `__main__`, its output on descriptors `out` and `err`; end the process."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.setpgid(0, 0)
    os.chdir(settings.folder)
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.DUMPABLE, 1)  # lets the host read its memory use
    limit(settings, confined.threads)
    if confined.rules is not None:
        kernel.syscall(kernel.LANDLOCK_RESTRICT, confined.rules, 0)
    if confined.filter:
        kernel.install_filter(confined.filter)
    os.closerange(3, 2**16)
    os._exit(run_source(source))


def limit(settings: Settings, threads: int) -> None:
    """Set the kernel's resource limits, which the program cannot raise."""
    for name, value in {
        "AS": settings.memory_bytes,
        "CPU": ceil(settings.timeout_s) + 1,
        "FSIZE": FILE_BYTES,
        "NOFILE": OPEN_FILES,
        "NPROC": threads + PROCESSES,
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
    }.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def run_source(source: str) -> int:
    """Execute a program and return its exit status; a traceback is written to standard error.

    Non-daemon threads are joined; `atexit` hooks do not run.
    """
    output = sys.stdout
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    status = 0
    try:
        exec(compile(source, NAME, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as stop:
        status = exit_status(stop.code)
    except BaseException as error:  # model-written code can raise anything
        report(error, error.__traceback__)
        status = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    output.flush()
    return status


def exit_status(code: object) -> int:
    """Return the exit status of `sys.exit(code)`; a text is written to standard error."""
    if code is None or isinstance(code, int):
        return (code or 0) & 255
    os.write(2, str(code)[:REPORT].encode(errors="replace"))
    return 1


def report(error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback that begins in the program; the middle of a long one is left out."""
    try:
        first = trace.tb_next if trace else None
        text = "".join(traceback.format_exception(type(error), error, first))
    except BaseException:  # no memory, or an exception that cannot be shown
        text = type(error).__name__
    half = REPORT // 2
    excerpt = text if len(text) <= REPORT else f"{text[:half]}\n...\n{text[-half:]}"
    os.write(2, excerpt.encode(errors="replace"))
