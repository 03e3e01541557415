"""The sandbox that callers use: a batch of programs in, what became of each out."""

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

FOLDER = "/sandbox"  # where a program starts, and all that it can write to


class Sandbox:
    """Runs model-written Python; `backend` names the way that is used.

    Without a name the first backend that works is taken, and `plain` only if it is allowed. A
    program has sympy, numpy and scipy (if installed), an empty folder, no network and nothing of
    the host; standard input is empty. A new process is made for each, so no state is kept. Its
    memory is bounded by `memory_bytes`, in each process by the kernel, and in all of them, which
    may be 32, by a look every 50 ms. Programs that name scipy run where it is imported already.

    Raises:
        SandboxUnavailable: if the backend does not work here, or only `plain` is left.
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
        if backend is not None and backend not in BACKENDS:
            raise UnknownName("sandbox backend", backend, BACKENDS)
        if min(timeout_s, memory_bytes, output_bytes, workers) <= 0:
            raise BadValue("a sandbox's limits and its number of workers are greater than 0")
        if backend == "plain" and not allow_plain:
            raise SandboxUnavailable("plain shuts nothing in: use it only with allow_plain=True")
        self.limits = {
            "timeout_s": timeout_s,
            "memory_bytes": memory_bytes,
            "output_bytes": output_bytes,
        }
        self.timeout_s = timeout_s
        # sandboxes end with the thread that started them, so the threads live as long as this
        self.threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self.workers: list[Worker] = []
        self.idle: SimpleQueue[tuple[Worker, Worker]] = SimpleQueue()  # without scipy, and with it
        names = [backend] if backend else [n for n in BACKENDS if allow_plain or n != "plain"]
        try:
            self.backend = self.threads.submit(self.choose, names, workers).result()
        except BaseException:
            self.close()
            raise

    def choose(self, names: Sequence[str], count: int) -> str:
        """Make the workers, with the first of these backends that starts."""
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
        found = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise SandboxUnavailable(f"no backend works ({found}); plain has to be allowed")

    def worker(self, backend: str, *, scipy: bool) -> Worker:
        """One sandbox, not yet started; as root its programs get a user of their own."""
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
        """What became of each program, in order; `workers` of them run at a time."""
        return list(self.threads.map(self.run_one, programs))

    def run_one(self, program: str) -> Execution:
        """Run one program in the next sandbox that is free; which kind, its own text says."""
        pair = self.idle.get()
        try:
            return pair["scipy" in program].run(program)
        finally:
            self.idle.put(pair)

    def close(self) -> None:
        """End the sandboxes and whatever runs in them."""
        for worker in self.workers:
            worker.close()
        self.threads.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def backends() -> dict[str, str]:
    """`works`, or the reason why not, for every backend: each is started and runs a program."""
    found: dict[str, str] = {}
    for name in BACKENDS:
        try:
            with Sandbox(name, allow_plain=True, workers=1) as sandbox:
                (done,) = sandbox.run(["print(6 * 7)"])
        except SandboxUnavailable as reason:
            found[name] = str(reason.args[0])
        else:
            found[name] = "works" if done.output == "42\n" else done.error
    return found
