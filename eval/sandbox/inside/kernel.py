"""Linux calls that Python has no name for: namespaces, mounts, landlock, seccomp, privileges."""

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
    """The result of a libc function.

    Raises:
        OSError: if it fails; the message names the function.
    """
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """The result of a system call that libc has no function for; raises OSError like `call`."""
    return call("syscall", ctypes.c_long(number), *arguments)


def prctl(option: int, value: int = 0, pointer: object = None) -> int:
    """Set a property of this process."""
    return call("prctl", option, ctypes.c_ulong(value), pointer, None, None)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system, or a folder elsewhere."""
    texts = (source.encode(), target.encode(), kind.encode())
    call("mount", *texts, ctypes.c_ulong(flags), options.encode())


def set_read_only(path: str, *, devices: bool = False, recursive: bool = True) -> None:
    """Make a mount (and those below it) read-only and without set-uid programs."""
    flags = ATTR_RDONLY | ATTR_NOSUID | (0 if devices else ATTR_NODEV)
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    at = AT_RECURSIVE if recursive else 0
    syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), at, attributes, ctypes.c_size_t(32))


def use_huge_pages(addresses: Iterable[int]) -> None:
    """Move what lies at these addresses to huge pages where it can be: a fork then copies less."""
    for page in {address // HUGE for address in addresses}:
        with suppress(OSError):  # a kernel before 6.1, or a huge page would hold other things too
            call("madvise", ctypes.c_void_p(page * HUGE), ctypes.c_size_t(HUGE), COLLAPSE)


def drop_privileges(uid: int | None) -> None:
    """Become `uid` if there is one, give up every capability and the way to regain one."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    version_3, self = 0x20080522, 0
    call("capset", struct.pack("Ii", version_3, self), bytes(24))
    prctl(NO_NEW_PRIVS, 1)
    prctl(DUMPABLE, 0)  # no tracing, and nothing of it in /proc, by the same user


def landlock_abi() -> int:
    """The version of landlock that the kernel speaks; 0 for none."""
    try:
        return syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def landlock_rules(readable: Iterable[str], writable: str) -> int | None:
    """A file descriptor of rules: read these, do anything in `writable`; None without landlock.

    Where the kernel can (6.12), the rules also forbid signals to processes outside, and connections
    to their abstract sockets; TCP is forbidden from 6.7 on.
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
    """Bytes of landlock's attributes that a kernel with this interface knows."""
    return 8 if abi < 4 else 16 if abi < 6 else 24


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog`: how many instructions of eight bytes, and where."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(instructions: bytes) -> None:
    """Let this process and its children make only the system calls that a seccomp filter allows."""
    program = FilterProgram(len(instructions) // 8, instructions)
    prctl(SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))
