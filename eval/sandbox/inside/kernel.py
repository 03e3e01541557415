"""Linux calls without a Python function: namespaces, mounts, landlock, seccomp, privileges."""

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

LIBC = ctypes.CDLL(None, use_errno=True)

PDEATHSIG, DUMPABLE, SECCOMP, SUBREAPER, NO_NEW_PRIVS = 1, 4, 22, 36, 38  # prctl
SECCOMP_MODE_FILTER = 2
NEW_NS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PID, NEW_NET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
MOUNT_SETATTR, LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 442, 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
COLLAPSE, HUGE = 25, 2**21  # madvise; bytes of a huge page


def call(name: str, *arguments: object) -> int:
    """Call a libc function and return its result.

    Raises:
        OSError: the call failed; the message names the function.
    """
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call without a libc function and return its result.

    Raises:
        OSError: the call failed.
    """
    return call("syscall", ctypes.c_long(number), *arguments)


def prctl(option: int, value: int = 0, pointer: object = None) -> int:
    """Set a property of this process, given the number of the property."""
    return call("prctl", option, ctypes.c_ulong(value), pointer, None, None)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system, or bind a folder to another place."""
    texts = (source.encode(), target.encode(), kind.encode())
    call("mount", *texts, ctypes.c_ulong(flags), options.encode())


def set_read_only(path: str, *, devices: bool = False, recursive: bool = True) -> None:
    """Make a mount, and the mounts below it, read-only and without set-uid programs."""
    flags = ATTR_RDONLY | ATTR_NOSUID | (0 if devices else ATTR_NODEV)
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    depth = AT_RECURSIVE if recursive else 0
    syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), depth, attributes, ctypes.c_size_t(32))


def use_huge_pages(addresses: Iterable[int]) -> None:
    """Move the memory at these addresses to huge pages where possible, so that forks copy less."""
    for page in {address // HUGE for address in addresses}:
        with suppress(OSError):  # a kernel before 6.1, or other mappings in the huge page
            call("madvise", ctypes.c_void_p(page * HUGE), ctypes.c_size_t(HUGE), COLLAPSE)


def drop_privileges(uid: int | None) -> None:
    """Switch to `uid` if it is given, and drop all capabilities permanently."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    version_3, self = 0x20080522, 0
    call("capset", struct.pack("Ii", version_3, self), bytes(24))
    prctl(NO_NEW_PRIVS, 1)
    prctl(DUMPABLE, 0)  # the same user can neither trace it nor read its /proc files


def landlock_abi() -> int:
    """Return the landlock version of the kernel; 0 without landlock."""
    try:
        return syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def landlock_rules(readable: Iterable[str], writable: str) -> int | None:
    """Return a file descriptor of landlock rules; None without landlock.

    The rules allow reading `readable` and everything but execution in `writable`. From Linux 6.7
    they forbid TCP; from 6.12 also signals to processes outside and connections to their abstract
    sockets.
    """
    abi = landlock_abi()
    if not abi:
        return None
    files = (1 << (13 + (abi >= 2) + (abi >= 3))) - 1 | (1 << 15 if abi >= 5 else 0)
    handled = struct.pack("QQQ", files, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    rules = syscall(LANDLOCK_CREATE, handled, ctypes.c_size_t(len(handled[: sizes(abi)])), 0)
    granted = dict.fromkeys((*readable, "/dev/urandom"), READ_FILE | READ_DIR)
    granted |= {writable: files & ~EXECUTE, "/dev/null": READ_FILE | WRITE_FILE}
    for path, access in granted.items():
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = access if os.path.isdir(path) else access & ~READ_DIR
        syscall(LANDLOCK_ADD, rules, 1, struct.pack("=Qi", allowed, file), 0)
        os.close(file)
    return rules


def sizes(abi: int) -> int:
    """Return the size in bytes of landlock's attributes in this version of its interface."""
    return 8 if abi < 4 else 16 if abi < 6 else 24


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog`: the number of instructions of eight bytes, and their address."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(instructions: bytes) -> None:
    """Apply a seccomp filter to this process and its children."""
    program = FilterProgram(len(instructions) // 8, instructions)
    prctl(SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))
