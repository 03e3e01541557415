"""Sampler that starts an OpenAI-compatible server for one model, and stops it at its own end."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL
from functools import partial
from pathlib import Path
from shutil import rmtree
from signal import SIGKILL, SIGTERM
from tempfile import mkdtemp
from time import monotonic, sleep
from weakref import finalize

from accelerate.utils.other import get_free_port

from core.bounded_templates import Tokenizer
from core.errors import EngineError
from core.rollout.completions_server import Server
from core.samplers.serve_command import command_words
from core.samplers.served import PATIENCE_S, TIMEOUT_S, CompletionsSampler

READY_S = 1800.0  # seconds for a large model to be loaded and compiled
END_S = 30.0  # seconds for a server to stop after SIGTERM


class StartedServer(Server):
    """Client of a server process that `command` starts; the process ends with this object.

    In the command, `{model}` is replaced by the folder or hub name of the model, and `{port}` by a
    free port of this machine on which the server listens.

    Raises:
        BadValue: the command lacks one of the two, or has another word in braces.
        EngineError: the program does not exist, ends, or is not up after half an hour.
    """

    name = "server that was started here"
    away = "see its log"

    def __init__(self, command: str, model: str):
        port = get_free_port()
        self.words = command_words(command, model, port)
        super().__init__(f"http://127.0.0.1:{port}", timeout_s=TIMEOUT_S, patience_s=PATIENCE_S)
        self.log = Path(mkdtemp(prefix="repro-server-")) / "log"
        try:
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    self.words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C reaches us alone, and we stop it
                    preexec_fn=end_with_parent(),
                )
        except OSError as error:
            rmtree(self.log.parent)
            raise EngineError(
                f"{command}: {self.words[0]} cannot be started ({error.strerror}): install it, or "
                "give the command of another server (eval_server of a run, --serve)"
            ) from None
        self.end = finalize(self, end_server, self.process, self.log.parent)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until the server is up.

        Raises:
            EngineError: the process ends, or is not up after `READY_S`.
        """
        end = monotonic() + READY_S
        while self.process.poll() is None and monotonic() < end:
            if self.health() is None:
                return
            sleep(0.5)
        code = self.process.poll()
        outcome = f"is not up after {READY_S:g} s" if code is None else f"ended with {code}"
        self.end.detach()  # the log stays
        stop_process(self.process)
        lines = self.log.read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no word")
        raise EngineError(
            f"{shlex.join(self.words)} {outcome}: {last[:300]}; its log is {self.log}"
        )


class StartedSampler(CompletionsSampler):
    """Sampler over a `StartedServer`."""

    def __init__(self, command: str, model: str, tokenizer: Tokenizer):
        super().__init__(StartedServer(command, model), model, tokenizer)


def end_with_parent() -> Callable[[], object] | None:
    """Return a `preexec_fn` that has Linux kill the process when its parent ends; else None."""
    if sys.platform != "linux":
        return None
    set_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
    return partial(CDLL(None).prctl, set_death_signal, SIGKILL)  # looked up before the fork


def end_server(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Stop a server and delete the folder of its log."""
    stop_process(process)
    rmtree(folder, ignore_errors=True)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process group; kill it if it has not ended after `END_S`."""
    for signal in (SIGTERM, SIGKILL):
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal)
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
