"""The seccomp filter of a program: no sockets, mounts, namespaces or access to other processes."""

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
    *("setxattr", "lsetxattr", "fsetxattr"),  # so do extended attributes of the emptied folder
    *("removexattr", "lremovexattr", "fremovexattr"),
    "memfd_create",  # memory that no process limit counts
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("quotactl", "syslog", "open_by_handle_at", "fanotify_init", "io_uring_setup"),
)
ATTRIBUTES = (  # of files; landlock does not restrict them
    *("chmod", "fchmod", "fchmodat", "chown", "lchown", "fchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
# System calls that libseccomp may not know by name and libc does not use: memfd_secret, fchmodat2,
# setxattrat, removexattrat, file_setattr.
NEW = (447, 452, 463, 466, 469)
OF_OTHERS = (
    *("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
)
NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)


@cache
def filter_program(*, attributes: bool = True) -> bytes:
    """Return the seccomp instructions: denied calls fail with EPERM, all other calls are allowed.

    Without `attributes`, programs cannot change the mode, owner or times of any file, their own
    included.

    Raises:
        RuntimeError: libseccomp is not installed.
    """
    from pyseccomp import ALLOW, ERRNO, MASKED_EQ, NE, Arg, SyscallFilter

    rules = SyscallFilter(ALLOW)
    for name in (*DENIED, *(() if attributes else ATTRIBUTES)):
        rules.add_rule(ERRNO(EPERM), name)
    for number in NEW:
        rules.add_rule(ERRNO(ENOSYS), number)
    for name in OF_OTHERS:
        rules.add_rule(ERRNO(EPERM), name, Arg(0, NE, 0))  # 0 is the caller itself
    everybody = 0xFFFFFFFF  # -1
    rules.add_rule(ERRNO(EPERM), "kill", Arg(0, MASKED_EQ, everybody, everybody))
    for flag in NAMESPACES:
        rules.add_rule(ERRNO(EPERM), "clone", Arg(0, MASKED_EQ, flag, flag))
    rules.add_rule(ERRNO(ENOSYS), "clone3")  # its flags lie in memory; libc falls back to clone
    with TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
