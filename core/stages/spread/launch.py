"""Trains on several processes: accelerate's launcher with one of our configurations starts them."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from core.paper.registry import find_paper
from core.settings.resolve import Resolved, resolve
from core.settings.run_settings import RunSettings
from core.stages.spread.launcher import ENDED, FAILED, OUTPUTS
from core.stages.spread.pool import PYTHON, FailedUnit, Unit, run_units
from core.stages.watch.checkpoints import last_checkpoint
from eval.errors import BadValue
from eval.terminal import say

CONFIGS = Path(__file__).parent / "accelerate_configs"
LAUNCHER = (*PYTHON, "-m", "core.stages.spread.launcher")
CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")


@dataclass(frozen=True)
class Models:
    """The models of a training by name or folder: the policy, and others in their roles."""

    policy: str
    roles: Mapping[str, str] = field(default_factory=dict[str, str])


class Crash(FailedUnit):
    """A process did not fail but was ended by a fault in native code."""


def launch(
    resolved: Resolved, seed: int, models: Models, data: Path, folder: Path
) -> Mapping[str, object]:
    """`train_model` on the processes that the settings ask for; what the first one gave.

    After a crash (as of a communication library) they start once more, from the last checkpoint.

    Raises:
        FailedUnit: a process failed; the message is that of the error.
    """
    try:
        train_on_processes(resolved, seed, models, data, folder)
    except Crash as crash:
        say(f"{crash}; starting again from the last checkpoint")
        train_on_processes(resolved, seed, models, data, folder)
    outputs = json.loads((folder / OUTPUTS).read_text(encoding="utf-8"))
    (folder / OUTPUTS).unlink()
    return outputs


def train_on_processes(
    resolved: Resolved, seed: int, models: Models, data: Path, folder: Path
) -> None:
    """Train until the processes end well, with the outputs in a file of the folder.

    Raises:
        Crash: a signal that nobody sends ended one.
        FailedUnit: one failed.
    """
    settings = resolved.run
    last_checkpoint(folder / "trainer")  # drops half-written ones before the processes look
    for name in (FAILED, OUTPUTS, ENDED):
        (folder / name).unlink(missing_ok=True)
    where = (json.dumps(asdict(models)), str(data), str(folder))
    configuration = str(CONFIGS / f"{settings.launch}.yaml")
    arguments = (
        str(folder),
        *("--config_file", configuration, "--num_processes", str(settings.processes)),
        *machines(),
        *("--module", "core.stages.launched", str(seed), *where, *words_of(resolved)),
    )
    unit = Unit(f"{settings.launch} x{settings.processes}", arguments, program())
    try:
        run_units([unit], 1)
    except FailedUnit as error:
        if (folder / FAILED).is_file():
            raise FailedUnit((folder / FAILED).read_text(encoding="utf-8"), 2) from error
        if (folder / ENDED).is_file():
            ended = (folder / ENDED).read_text(encoding="utf-8")
            kind = Crash if ended.startswith(CRASHES) else FailedUnit
            raise kind(f"{unit.name}: {ended}", 1) from error
        raise


def words_of(resolved: Resolved) -> tuple[str, ...]:
    """A run in the words that `run_of` makes it of again, in a process of its own."""
    factor = repr(resolved.factor)
    return (resolved.paper.slug, resolved.scale, resolved.arm, factor, *resolved.arguments)


def run_of(slug: str, scale: str, arm: str, factor: str, *arguments: str) -> Resolved:
    """The run that `words_of` gave the words of."""
    paper = find_paper(slug)
    return resolve(paper, arm=arm, scale=scale, arguments=arguments, factor=float(factor))


def check_installed(settings: RunSettings) -> None:
    """Look whether a launch can start here.

    Raises:
        BadValue: it needs DeepSpeed, which is not installed, or as many processes on each machine.
    """
    if settings.launch is not None and settings.processes % nodes():
        raise BadValue(
            f"processes={settings.processes}: {nodes()} machines of this SLURM job need a multiple "
            "of that"
        )
    if str(settings.launch).startswith("zero") and find_spec("deepspeed") is None:
        raise BadValue(
            f"launch={settings.launch}: DeepSpeed is not installed; "
            "install it with `pip install 'repro-papers[deepspeed]'`, or use launch=fsdp2"
        )


def nodes() -> int:
    """How many machines SLURM gave to this job; 1 outside of SLURM."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES", "1")) if which("srun") else 1


def program() -> tuple[str, ...]:
    """What starts the launcher: on each machine of a SLURM job, else here."""
    if nodes() == 1:
        return LAUNCHER
    each = ("srun", f"--nodes={nodes()}", "--ntasks-per-node=1", "--kill-on-bad-exit=1")
    return (*each, *LAUNCHER)


def machines() -> tuple[str, ...]:
    """The launcher's arguments for several machines; this one, where the job began, leads."""
    if nodes() == 1:
        return ("--main_process_port", "0")
    port = 20_000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 10_000
    lead = ("--main_process_ip", socket.gethostname(), "--main_process_port", str(port))
    return ("--num_machines", str(nodes()), *lead)
