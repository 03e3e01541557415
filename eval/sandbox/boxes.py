"""The three sandbox backends, most isolated first, and the commands that start them."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from eval.sandbox.inside.namespaces import DEVICES, FOLDER_BYTES
from eval.sandbox.inside.program import Settings
from eval.sandbox.worker import SandboxUnavailable

OFFERED = ("sympy", "mpmath", "gmpy2", "numpy", "scipy")  # beside the standard library
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
INSIDE = Path(__file__).resolve().parent / "inside"
ROOT = str(INSIDE.parents[2])
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
FLAGS = ("-s", "-S", "-P", "-B", "-X", "utf8", "-W", "ignore")
BOOT = "import sys; sys.path.insert(0, {!r}); from eval.sandbox.inside.{} import main; main()"


def packages() -> list[Path]:
    """Return the folders of the packages that programs may import, and their libraries."""
    specs = [find_spec(name) for name in OFFERED]
    folders = [Path(spec.origin).resolve().parent for spec in specs if spec and spec.origin]
    bundled = [folder.with_name(f"{folder.name}.libs") for folder in folders]
    return [*folders, *(folder for folder in bundled if folder.is_dir())]


def readable() -> list[str]:
    """Return the paths that programs can read: system libraries, Python, packages, this code."""
    base = Path(sys.base_prefix).resolve()
    candidates = [*map(Path, SYSTEM), base / "lib", Path(PYTHON), *packages(), INSIDE]
    roots: list[Path] = []
    for path in sorted({p for p in candidates if p.exists() and not p.is_symlink()}):
        if not any(path.is_relative_to(root) for root in roots):
            roots.append(path)
    return [str(path) for path in roots]


def links() -> dict[str, str]:
    """Return the system folders that are symbolic links, with their targets."""
    return {path: os.readlink(path) for path in SYSTEM if os.path.islink(path)}


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs `main` of a module in `inside`."""
    return [PYTHON, *FLAGS, "-c", BOOT.format(ROOT, module), *arguments]


def bubblewrap(settings: Settings) -> list[str]:
    """Return the `bwrap` command with all namespaces; as root, the server inside switches users.

    Raises:
        SandboxUnavailable: bwrap is not installed.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("bwrap is not installed: apt-get install bubblewrap")
    command = [program, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--die-with-parent", "--as-pid-1"]
    if settings.uid is None:
        command += ["--unshare-user"]
    else:
        command += ["--cap-drop", "ALL"]
        for capability in ("CAP_CHOWN", "CAP_SETUID", "CAP_SETGID"):
            command += ["--cap-add", capability]
    parents = {folder for path in (*settings.readable, *DEVICES) for folder in Path(path).parents}
    for folder in sorted(parents - {Path("/")}):
        command += ["--perms", "0755", "--dir", str(folder)]
    for path in settings.readable:
        command += ["--ro-bind", path, path]
    for link, target in links().items():
        command += ["--symlink", target, link]
    for device in DEVICES:
        command += ["--dev-bind", device, device]
    command += ["--size", str(FOLDER_BYTES), "--tmpfs", settings.folder, "--remount-ro", "/"]
    command += ["--chdir", settings.folder]
    return [*command, "--", *python("server", json.dumps(asdict(settings)))]


def namespaces(settings: Settings) -> list[str]:
    """Return the command of our own launcher: the same namespaces without a helper program."""
    return python("namespaces", json.dumps(asdict(settings)), json.dumps(links()))


def plain(settings: Settings) -> list[str]:
    """Return the command of a subprocess with limits, guarded only by landlock if there is one."""
    return python("keeper", json.dumps(asdict(settings)))


BACKENDS: dict[str, Callable[[Settings], list[str]]] = {
    "bubblewrap": bubblewrap,
    "namespaces": namespaces,
    "plain": plain,
}
