"""Runs the units of an order as jobs of a cluster, through submitit.

On SLURM the units are one job array. Submitit is used rather than Ray because clusters have a job
queue, units need not communicate, and no service has to be kept running.
"""

import shlex
import subprocess
from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any

from core.records.places import root
from core.spread.pool import PYTHON, FailedUnit, Unit
from eval.errors import BadValue, UnknownName
from eval.terminal import say

CLUSTERS = ("slurm", "local")
POLL_S = 1.0  # between two looks at the queue; submitit itself asks SLURM less often
OURS = ("nodes", "tasks_per_node", "slurm_array_parallelism")


def read_options(texts: Sequence[str]) -> dict[str, object]:
    """Return the parameters of submitit from `name=value` texts, such as gpus_per_node=8.

    Raises:
        BadValue: a text is no `name=value`, or repro sets the parameter itself.
    """
    options: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in OURS:
            raise BadValue(
                f"--job {text}: expected name=value, a parameter of submitit other than "
                f"{', '.join(OURS)}"
            )
        try:
            options[name] = literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def run_jobs(
    units: Sequence[Unit], cluster: str, options: Mapping[str, object], at_once: int
) -> None:
    """Queue every unit as a job, at most `at_once` of them running, and wait for all.

    Raises:
        UnknownName: there is no such cluster.
        BadValue: submitit is not installed, or does not know an option.
        FailedUnit: a job failed; the others have been cancelled and can continue.
    """
    executor = executor_of(cluster, options, at_once)
    from submitit.helpers import as_completed  # of an extra, which is there now

    with executor.batch():
        jobs = [executor.submit(call, [*unit.program, *unit.arguments]) for unit in units]
    for unit, job in zip(units, jobs, strict=True):
        say(f"[{unit.name}] job {job.job_id}, log {job.paths.stderr}")
    try:
        units_by_job = {job.job_id: unit for unit, job in zip(units, jobs, strict=True)}
        for job in as_completed(jobs, poll_frequency=POLL_S):
            wait_for(units_by_job[job.job_id], job)
            say(f"[{units_by_job[job.job_id].name}] done")
    except BaseException:
        for job in jobs:
            job.cancel()
        raise


def executor_of(
    cluster: str, options: Mapping[str, object], at_once: int
) -> Any:  # Any: of an extra
    """Return submitit's executor for a cluster, with its logs in runs/jobs.

    Raises:
        UnknownName: there is no such cluster.
        BadValue: submitit is not installed, or does not know an option.
    """
    if cluster not in CLUSTERS:
        raise UnknownName("cluster", cluster, CLUSTERS)
    try:
        from submitit import AutoExecutor
    except ImportError as error:
        raise BadValue(
            f"--on {cluster}: submitit is not installed; install it with "
            "`pip install 'repro-papers[cluster]'`"
        ) from error
    try:
        python = {f"{cluster}_python": shlex.join(PYTHON)}
        executor = AutoExecutor(folder=root() / "runs" / "jobs", cluster=cluster, **python)
        parameters = {"nodes": 1, "tasks_per_node": 1, "name": "repro"}
        executor.update_parameters(**parameters, **options, slurm_array_parallelism=at_once)
    except (NameError, TypeError, RuntimeError) as error:
        raise BadValue(f"--on {cluster}: {' '.join(str(error).split())}") from error
    return executor


def wait_for(unit: Unit, job: Any) -> None:  # Any: submitit's, which is an extra
    """Wait for a job to end.

    Raises:
        FailedUnit: the job failed or was cancelled.
    """
    from submitit.core.utils import UncompletedJobError

    try:
        code, last = job.result()
    except UncompletedJobError as error:
        raise FailedUnit(f"{unit.name}: {str(error).strip().splitlines()[0]}", 1) from error
    if code:
        raise FailedUnit(f"{unit.name}: {last or f'exit code {code}'}", code)


def call(command: list[str]) -> tuple[int, str]:
    """Run a command on the job's machine; return its exit code and the last line of its stderr."""
    last = ""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            say(line.rstrip("\n"))
            last = line.rstrip() or last
    return process.returncode, last
