"""Training on several processes, which accelerate's launcher starts."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from core.paper.registry import find_paper
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import RunSettings
from core.spread.checkpoints import last_checkpoint
from core.spread.launcher import ENDED, FAILED, OUTPUTS
from core.spread.pool import PYTHON, FailedUnit, Unit, run_units
from eval.errors import BadValue
from eval.terminal import say

CONFIGS = Path(__file__).parent / "accelerate_configs"
LAUNCHER = (*PYTHON, "-m", "core.spread.launcher")
CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")


@dataclass(frozen=True)
class Models:
    """The models of a training by name or folder: the policy, and others by their role."""

    policy: str
    roles: Mapping[str, str] = field(default_factory=dict[str, str])


class Crash(FailedUnit):
    """The failure of a process that a fault in native code ended."""


def launch(
    resolved: Resolved, seed: int, models: Models, data: Path, folder: Path
) -> Mapping[str, object]:
    """Train on the processes that the settings ask for; return the first process's outputs.

    After a crash, for example of a communication library, the processes start once more from the
    last checkpoint.

    Raises:
        FailedUnit: a process failed; the message is that of its error.
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
    """Train until all processes have ended; the outputs are left in a file of the folder.

    Raises:
        Crash: a signal of a fault in native code ended a process.
        FailedUnit: a process failed.
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
    """Return the arguments from which `run_of` rebuilds a run in another process."""
    factor = repr(resolved.factor)
    return (resolved.paper.slug, resolved.scale, resolved.arm, factor, *resolved.arguments)


def run_of(slug: str, scale: str, arm: str, factor: str, *arguments: str) -> Resolved:
    """Return the run of the arguments that `words_of` returned."""
    paper = find_paper(slug)
    return resolve(paper, arm=arm, scale=scale, arguments=arguments, factor=float(factor))


def check_installed(settings: RunSettings) -> None:
    """Check that a launch can start on this machine.

    Raises:
        BadValue: DeepSpeed is needed and not installed, or the machines do not divide the
            processes.
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
    """Return the number of machines of this SLURM job; 1 outside of SLURM."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES", "1")) if which("srun") else 1


def program() -> tuple[str, ...]:
    """Return the command of the launcher, on every machine of a SLURM job."""
    if nodes() == 1:
        return LAUNCHER
    srun = ("srun", f"--nodes={nodes()}", "--ntasks-per-node=1", "--kill-on-bad-exit=1")
    return (*srun, *LAUNCHER)


def machines() -> tuple[str, ...]:
    """Return the launcher's arguments for several machines, of which this one is the master."""
    if nodes() == 1:
        return ("--main_process_port", "0")
    port = 20_000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 10_000
    lead = ("--main_process_ip", socket.gethostname(), "--main_process_port", str(port))
    return ("--num_machines", str(nodes()), *lead)
