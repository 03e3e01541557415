"""A run that is killed, interrupted or out of space continues to the very same record."""

import os
import resource
import signal
from contextlib import contextmanager

import pytest
from changed_settings import changed
from typer.testing import CliRunner
from waiting import checkpoint, wait_for

from core.paper.registry import find_paper
from core.records.places import record_files
from core.settings.resolve import resolve
from core.spread.pool import COMMAND
from core.spread.preloaded import Forked
from core.stages.chain import Chain

PAPER = "deepseekmath-grpo"
FOUR = "max_steps=8"  # long enough to be hit in the middle


class Started(Forked):
    """A command forked from a process that has imported torch, and what it says on stderr."""

    def __init__(self, root, *arguments):
        receiving, sending = os.pipe()
        self.lines = os.fdopen(receiving)
        place = {**os.environ, "REPRO_ROOT": str(root)}
        super().__init__(COMMAND, [str(a) for a in arguments], place, sending)
        os.close(sending)

    def communicate(self):
        """Nothing, and all that it says until it ends."""
        with self.lines:
            return None, self.lines.read()


@pytest.fixture
def start(root):
    """`start("run", ...)` gives the running process."""
    processes = []

    def launch(*arguments):
        processes.append(Started(root, *arguments))
        return processes[-1]

    yield launch
    for process in processes:
        process.kill()
        process.lines.close()


def names():
    return [path.name for path in record_files(PAPER)]


@pytest.fixture(scope="module")
def straight(tmp_path_factory, settings):
    """The names of the records of an uninterrupted run, which hold the digest of its weights."""
    from core.cli.main import app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(tmp_path_factory.mktemp("straight")))
        command = ["run", PAPER, "--jobs", "1", *changed(settings, FOUR)]
        assert CliRunner().invoke(app, command).exit_code == 0
        return sorted(names())


def test_kill_9_in_training_continues_to_the_same_weights(start, root, repro, settings, straight):
    process = start("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    wait_for(checkpoint(root, 3), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert names() == []
    again = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert again.exit_code == 0, again.output
    assert "continues from checkpoint-" in again.stderr
    assert sorted(names()) == straight


def test_ctrl_c_says_so_and_the_same_command_continues(start, root, repro, settings, straight):
    process = start("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    wait_for(checkpoint(root, 2), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.wait(timeout=60) == 130
    assert said.strip().splitlines()[-1].startswith("interrupted: what was finished is kept")
    assert "Traceback" not in said
    again = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert again.exit_code == 0
    assert sorted(names()) == straight


def interrupted(start, root, settings):
    """A run killed after its third checkpoint; the folder of its newest whole checkpoint."""
    process = start("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    wait_for(
        lambda: (third := checkpoint(root, 3)()) and (third / "complete.json").exists(), process
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    sealed = (root / "runs").glob("train-*/trainer/checkpoint-*/complete.json")
    return max((p.parent for p in sealed), key=lambda p: int(p.name.rpartition("-")[2]))


def test_checkpoints_half_written_are_dropped_and_damaged_ones_refused(
    start, root, repro, settings, straight
):
    newest = interrupted(start, root, settings)
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert refused.exit_code == 2
    assert f"{weights} was altered or cut off; delete {newest}" in refused.stderr.splitlines()[-1]
    (newest / "complete.json").unlink()
    again = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert again.exit_code == 0
    assert f"{newest.name} was only half written when the run stopped, dropped" in again.stderr
    assert sorted(names()) == straight


@contextmanager
def no_larger_file(size):
    """Writes beyond so many bytes of a file fail, with the same kind of error as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("root")
def test_a_disk_that_is_full_at_a_checkpoint_is_one_line_too(repro, settings, straight):
    """In its weights, which safetensors writes, and in its optimizer, which torch writes."""
    chain = Chain(resolve(find_paper(PAPER), arguments=changed(settings, FOUR)))
    assert chain.train is not None
    chain.train.data.run()
    chain.start.run()
    for size in (60_000, 100_000):
        with no_larger_file(size):
            full = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
        assert full.exit_code == 1, full.output
        last = full.stderr.strip().splitlines()[-1]
        assert last.startswith("DiskFull: no space to write ")
        assert "the same command again; what was finished is kept" in last
    again = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert again.exit_code == 0, again.output
    assert sorted(names()) == straight


def test_a_full_disk_is_one_line_and_the_same_command_continues(repro, settings, straight):
    """A file-size limit fails writes with the same kind of error as a full disk."""
    with no_larger_file(200_000):
        full = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert full.exit_code == 1, full.output
    assert full.stderr.strip().splitlines()[-1].startswith("DiskFull: no space to write")
    assert "Traceback" not in full.stderr
    again = repro("run", PAPER, "--jobs", 1, *changed(settings, FOUR))
    assert again.exit_code == 0
    assert sorted(names()) == straight
