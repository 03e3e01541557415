"""What a test waits for while a run goes on in a process of its own."""

from time import monotonic, sleep


def wait_for(found, process, limit_s=120):
    """The first value that is true while a process runs."""
    end = monotonic() + limit_s
    while monotonic() < end:
        if value := found():
            return value
        assert process.poll() is None, process.communicate()[1]
        sleep(0.02)
    raise AssertionError("nothing happened in time")


def checkpoint(root, step):
    return lambda: next((root / "runs").glob(f"train-*/trainer/checkpoint-{step}"), None)
