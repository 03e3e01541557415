"""The launcher of our own sandbox: process 1 with a few folders and no network."""

import os
import signal
import sys

from eval.sandbox.inside import kernel

BASE = "/proc"  # exists everywhere, and programs need nothing in it
DEVICES = ("/dev/null", "/dev/urandom")
FOLDER_BYTES = 64 * 2**20


def enter(folder: str, readable: list[str], links: dict[str, str]) -> None:
    """Continue as process 1 of new namespaces whose root is built over the folder `BASE`.

    A parent process stays outside: it ends with process 1, and process 1 with it.

    Raises:
        OSError: the kernel does not allow this user a call; the message names the call.
    """
    uid, gid = os.getuid(), os.getgid()
    os.umask(0o022)
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
    flags = kernel.NEW_NS | kernel.NEW_PID | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_UTS
    kernel.call("unshare", flags | (kernel.NEW_USER if uid else 0))
    if uid:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        os._exit(abs(os.waitstatus_to_exitcode(status)))
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
    build_root(BASE, folder, readable, links)
    change_root(BASE)
    os.chdir(folder)


def build_root(base: str, folder: str, readable: list[str], links: dict[str, str]) -> None:
    """Mount the visible files below `base`: read-only paths, two devices, an empty folder."""
    safe = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", base, "tmpfs", safe, "mode=755")
    for path in (*readable, *DEVICES):
        target = base + path
        if os.path.isdir(path):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "x"):
                pass
        kernel.mount(path, target, "", kernel.MS_BIND | kernel.MS_REC)
        if path not in DEVICES:
            kernel.set_read_only(target)
    for link, target in links.items():
        os.symlink(target, base + link)
    os.mkdir(base + folder)
    kernel.mount("tmpfs", base + folder, "tmpfs", safe, f"size={FOLDER_BYTES}")


def change_root(base: str) -> None:
    """Make `base` the read-only root and unmount the old root."""
    os.chdir(base)
    kernel.call("pivot_root", b".", b".")
    kernel.call("umount2", b".", kernel.MNT_DETACH)
    os.chdir("/")
    kernel.set_read_only("/", recursive=False)


def main() -> None:
    """Run `namespaces SETTINGS LINKS`: enter the namespaces, then serve."""
    import json

    from eval.sandbox.inside.program import Settings
    from eval.sandbox.inside.server import serve

    settings = Settings(**json.loads(sys.argv[1]))
    try:
        enter(settings.folder, settings.readable, json.loads(sys.argv[2]))
    except OSError as error:
        sys.exit(str(error))
    serve(settings)
