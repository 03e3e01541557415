"""The seccomp filter of a program: no sockets, no mounts, no namespaces, no other process."""

from errno import ENOSYS, EPERM
from functools import cache
from tempfile import TemporaryFile

DENIED = (
    *("socket", "bind", "connect", "listen", "accept", "accept4"),
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "move_mount", "open_tree"),
    *("fsopen", "fsmount", "fspick", "fsconfig", "mount_setattr", "swapon", "swapoff", "acct"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    *("process_madvise", "move_pages", "migrate_pages", "setpriority", "ioprio_set"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "personality"),
    *("shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop"),
    *("semctl", "semtimedop", "mq_open", "mq_unlink"),  # these outlive the program
    *("setxattr", "lsetxattr", "fsetxattr"),  # and so would a note on the empty folder
    *("removexattr", "lremovexattr", "fremovexattr"),
    "memfd_create",  # memory of no process
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("quotactl", "syslog", "open_by_handle_at", "fanotify_init", "io_uring_setup"),
)
ATTRIBUTES = (  # of files, which landlock leaves alone
    *("chmod", "fchmod", "fchmodat", "chown", "lchown", "fchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
# That libseccomp may have no name for, and libc no need of: memfd_secret, fchmodat2, setxattrat,
# removexattrat, file_setattr.
NEW = (447, 452, 463, 466, 469)
OF_OTHERS = (
    *("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
)
NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)


@cache
def filter_program(*, attributes: bool = True) -> bytes:
    """The filter's instructions: what is denied fails with EPERM, everything else is allowed.

    Without `attributes` no file's mode, owner or times can be changed, not even a program's own.

    Raises:
        RuntimeError: if libseccomp is not installed.
    """
    from pyseccomp import ALLOW, ERRNO, MASKED_EQ, NE, Arg, SyscallFilter

    found = SyscallFilter(ALLOW)
    for name in (*DENIED, *(() if attributes else ATTRIBUTES)):
        found.add_rule(ERRNO(EPERM), name)
    for number in NEW:
        found.add_rule(ERRNO(ENOSYS), number)
    for name in OF_OTHERS:
        found.add_rule(ERRNO(EPERM), name, Arg(0, NE, 0))  # 0 is the caller itself
    everybody = 0xFFFFFFFF  # -1
    found.add_rule(ERRNO(EPERM), "kill", Arg(0, MASKED_EQ, everybody, everybody))
    for flag in NAMESPACES:
        found.add_rule(ERRNO(EPERM), "clone", Arg(0, MASKED_EQ, flag, flag))
    found.add_rule(ERRNO(ENOSYS), "clone3")  # its flags lie in memory; libc falls back to clone
    with TemporaryFile() as file:
        found.export_bpf(file)
        file.seek(0)
        return file.read()
