"""The hostile programs harm nothing, in every backend, as root and as an unprivileged user."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import sympy
from hostile_programs import HOSTILE, OUTPUT, PLANTS

from eval.sandbox import BACKENDS

HERE = Path(__file__).resolve().parent
PATHS = [str(HERE.parents[1]), str(Path(sympy.__file__).parents[1])]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
SECONDS = 600  # for all programs, on a machine that is busy


@cache
def interpreter() -> str:
    """A Python of this version that an unprivileged user can start and that has our packages."""
    version = f"python3.{sys.version_info.minor}"
    for path in (
        os.path.realpath(sys.executable),
        f"/usr/bin/{version}",
        f"/usr/local/bin/{version}",
    ):
        start = ["sh", "-c", f"exec {path} -c 'import sympy, pyseccomp'"]
        as_nobody = (*NOBODY, *start) if os.getuid() == 0 else start
        if subprocess.run(as_nobody, env=environment(), capture_output=True).returncode == 0:
            return path
    pytest.skip(f"NOT TESTED: no {version} that user 65534 can read, so no run as another user")


def environment() -> dict[str, str]:
    """Where a Python without our virtual environment finds this project and its packages."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(PATHS), "LANG": "C.UTF-8"}


@pytest.mark.long
@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_hostile_programs_harm_nothing(backend: str, user: str):
    if backend == "bubblewrap" and not shutil.which("bwrap"):
        pytest.skip("NOT TESTED: bwrap is not installed (apt-get install bubblewrap)")
    if user == "root" and os.getuid() != 0:
        pytest.skip("NOT TESTED as root: the tests run as another user")
    change = NOBODY if user == "nobody" and os.getuid() == 0 else ()
    command = [*change, interpreter(), str(HERE / "hostile_programs.py"), backend]
    ran = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=SECONDS, cwd="/"
    )
    if "SandboxUnavailable" in ran.stderr:
        pytest.skip(
            f"NOT TESTED: {backend} does not work here as {user}: {ran.stderr.splitlines()[-1]}"
        )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["user"] == 0) == (user == "root")
    for name, (statuses, _) in HOSTILE.items():
        done = found["done"][name]
        assert done["status"] in statuses.split(), (name, done)
        assert "HARM" not in done["output"], (name, done)
        assert len(done["output"]) + len(done["error"]) <= 2 * OUTPUT, name
        assert done["late_s"] <= 1, (name, done)
    assert found["done"]["box, then exit"]["output"] == "\\boxed{7}\n"
    assert found["victim"] == ["gold"]
    assert found["elsewhere"] == []
    assert found["heard"] == []
    assert len(found["left"]) <= len(found["quiet"]), found["left"]
    assert found["after"] == []
    assert found["done"]["memory in sum"]["error"].endswith("of memory in all of its processes")
    for fresh, *later in found["states"].values():
        assert "planted" not in fresh
        assert fresh.startswith("[True, True, True]\n3 3 ")
        for plant, state in zip(PLANTS, later, strict=True):
            assert state == fresh, plant
