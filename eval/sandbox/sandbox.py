"""The sandbox that callers use: runs a batch of programs and returns their outcomes."""

import base64
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Self

from eval.errors import BadValue, UnknownName
from eval.sandbox.boxes import BACKENDS, packages, readable
from eval.sandbox.filter import filter_program
from eval.sandbox.inside.program import Settings
from eval.sandbox.worker import Execution, SandboxUnavailable, Worker

FOLDER = "/sandbox"  # the working directory of programs, the only place they can write to


class Sandbox:
    """A pool of sandboxes for model-written Python; `backend` names the backend in use.

    Without a backend name the first backend that works is used, `plain` only with `allow_plain`. A
    program has sympy, numpy and scipy (if installed) and an empty folder, but no network, no files
    of the host and an empty standard input. Each program runs in a new process, so no state is
    kept. The kernel limits each process to `memory_bytes`; the total of a program's processes (32
    at most) is checked every 50 ms. Programs whose text contains "scipy" run where scipy is already
    imported.

    Raises:
        UnknownName: there is no such backend.
        BadValue: a limit or the number of workers is not positive.
        SandboxUnavailable: the backend does not work here, or only `plain` would work.
    """

    def __init__(
        self,
        backend: str | None = None,
        *,
        timeout_s: float = 10,
        memory_bytes: int = 2**30,
        output_bytes: int = 2**16,
        allow_plain: bool = False,
        workers: int = 2,
    ) -> None:
        names = allowed_backends(backend, allow_plain=allow_plain)
        if min(timeout_s, memory_bytes, output_bytes, workers) <= 0:
            raise BadValue("a sandbox's limits and its number of workers must be greater than 0")
        self.limits = {
            "timeout_s": timeout_s,
            "memory_bytes": memory_bytes,
            "output_bytes": output_bytes,
        }
        self.timeout_s = timeout_s
        # a sandbox ends with the thread that started it, so the threads live as long as this object
        self.threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self.workers: list[Worker] = []
        self.idle: SimpleQueue[tuple[Worker, Worker]] = SimpleQueue()  # without scipy, and with it

        try:
            self.backend = self.threads.submit(self.choose, names, workers).result()
        except BaseException:
            self.close()
            raise

    def choose(self, names: Sequence[str], count: int) -> str:
        """Create the workers with the first of these backends that starts, and return its name.

        Raises:
            SandboxUnavailable: none of the backends starts.
        """
        reasons: dict[str, str] = {}
        for name in names:
            pairs = [
                (self.worker(name, scipy=False), self.worker(name, scipy=True))
                for _ in range(count)
            ]
            self.workers = [worker for pair in pairs for worker in pair]
            try:
                self.workers[0].start()
            except SandboxUnavailable as error:
                reasons[name] = str(error.args[0])
                continue
            for pair in pairs:
                self.idle.put(pair)
            return name
        if len(reasons) == 1:
            raise SandboxUnavailable(next(iter(reasons.values())))
        causes = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise SandboxUnavailable(f"no backend works ({causes}); plain has to be allowed")

    def worker(self, backend: str, *, scipy: bool) -> Worker:
        """Create a worker without starting it; as root, its programs get their own user.

        Raises:
            SandboxUnavailable: libseccomp is missing and the backend is not "plain".
        """
        try:
            instructions = filter_program(attributes=backend != "plain")
        except RuntimeError as error:
            if backend != "plain":
                raise SandboxUnavailable(f"{error}: apt-get install libseccomp2") from None
            instructions = b""
        settings = Settings(
            folder="" if backend == "plain" else FOLDER,
            readable=readable(),
            packages=[str(folder) for folder in packages()],
            filter=base64.b64encode(instructions).decode(),
            uid=None if os.getuid() else 20_000 + secrets.randbelow(40_000),
            scipy=scipy,
            **self.limits,
        )
        return Worker(BACKENDS[backend], settings)

    def run(self, programs: Sequence[str]) -> list[Execution]:
        """Run programs, `workers` at a time, and return their outcomes in order."""
        return list(self.threads.map(self.run_one, programs))

    def run_one(self, program: str) -> Execution:
        """Run one program in the next free sandbox, one with scipy if the program names it.

        Raises:
            SandboxUnavailable: the sandbox cannot be started.
        """
        pair = self.idle.get()
        try:
            return pair["scipy" in program].run(program)
        finally:
            self.idle.put(pair)

    def close(self) -> None:
        """End the sandboxes and the programs that run in them."""
        for worker in self.workers:
            worker.close()
        self.threads.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def allowed_backends(backend: str | None, *, allow_plain: bool) -> list[str]:
    """Return the backend in a list, or without a name all allowed ones, most isolated first.

    Raises:
        UnknownName: there is no such backend.
        SandboxUnavailable: the backend is `plain`, which is not allowed.
    """
    if backend is None:
        return [name for name in BACKENDS if allow_plain or name != "plain"]
    if backend not in BACKENDS:
        raise UnknownName("sandbox backend", backend, BACKENDS)
    if backend == "plain" and not allow_plain:
        raise SandboxUnavailable("plain shuts nothing in: use it only with allow_plain=True")
    return [backend]


def backends() -> dict[str, str]:
    """Start each backend and run a program; return `works` or the failure's reason by backend."""
    states: dict[str, str] = {}
    for name in BACKENDS:
        try:
            with Sandbox(name, allow_plain=True, workers=1) as sandbox:
                (execution,) = sandbox.run(["print(6 * 7)"])
        except SandboxUnavailable as reason:
            states[name] = str(reason.args[0])
        else:
            states[name] = "works" if execution.output == "42\n" else execution.error
    return states
