"""Hostile programs with the ends they may come to; as a script, runs them all in one backend.

`python hostile_programs.py BACKEND` prints what happened as JSON. A program prints HARM when it got
what it must not get. `{victim}` is a folder that the host itself can write, `{host}` its process.
"""

# ruff: noqa: E501 - a program is easier to read on its own lines
import json
import os
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from eval.sandbox import Sandbox
from eval.sandbox.inside.kernel import landlock_abi

SHORT_S, LONG_S, OUTPUT = 1.0, 20.0, 20_000  # a program that may time out has the short limit
SECRET = "s3cret-of-the-host"
ATTEMPT = """
def attempt(action):
    try:
        action()
    except BaseException as error:
        print("denied", type(error).__name__)
    else:
        print("HARM")
import ctypes, os, resource, signal, socket, subprocess, sys, threading, time
"""

# name: (statuses it may end with, program)
HOSTILE: dict[str, tuple[str, str]] = {
    "loop": ("timeout", "while True: pass"),
    "sleep": ("timeout", "time.sleep(60)"),
    "ignored signals": (
        "timeout killed",
        "for s in (1, 2, 14, 15, 24): signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
    ),
    "power": ("timeout killed", "print(len(str(9**9**8)))"),
    "recursion": ("error", "def f(): return f()\nf()"),
    "recursion without limit": (
        "error killed timeout",
        "sys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
    ),
    "8 GB": ("error", "bytearray(8 * 2**30)"),
    "300 forks": (
        "ok",
        "try:\n for n in range(300):\n  if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "except OSError: pass\nprint('HARM' if n == 299 else n)",
    ),
    "fork bomb": (
        "timeout killed",
        "while True:\n try: os.fork()\n except OSError: pass",
    ),
    "thread bomb": (
        "error timeout killed",
        "for _ in range(300): threading.Thread(target=time.sleep, args=(60,)).start()\nprint('HARM')",
    ),
    "passwd": ("ok", "attempt(lambda: open('/etc/passwd').read())"),
    "gold": ("ok", "attempt(lambda: open('{victim}/gold').read())"),
    "repository": ("ok", "attempt(lambda: os.listdir('{root}/tests'))"),
    "environment of others": (
        "ok",
        "for pid in {{1, 2, os.getppid(), {host}}}:\n for what in ('environ', 'cmdline'):\n"
        "  attempt(lambda: open(f'/proc/{{pid}}/{{what}}', 'rb').read())",
    ),
    "own environment": ("ok", "print('HARM' if '{secret}' in str(os.environ) else 'clean')"),
    "/proc": ("ok", "attempt(lambda: os.listdir('/proc'))"),
    "inherited descriptors": ("ok", "for n in range(3, 64): attempt(lambda: os.fstat(n))"),
    "tcp": ("ok", "attempt(lambda: socket.create_connection(('127.0.0.1', {tcp}), 1))"),
    "udp": (
        "ok",
        "attempt(lambda: socket.socket(2, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp})))",
    ),
    "dns": ("ok", "attempt(lambda: socket.gethostbyname('localhost.localdomain'))"),
    "write outside": (
        "ok",
        "for f in ('{victim}', '/tmp', '/var/tmp', '/dev/shm', '..', '/', '{root}'):\n"
        " attempt(lambda: open(f + '/planted-{host}', 'w'))",
    ),
    "remove outside": (
        "ok",
        "attempt(lambda: os.unlink('{victim}/gold'))\nattempt(lambda: os.rename('{victim}', 'x'))\n"
        "attempt(lambda: os.rmdir(os.getcwd()))",
    ),
    "symlink out": (
        "ok",
        "os.symlink('{victim}', 'link')\nattempt(lambda: open('link/planted', 'w'))\n"
        "attempt(lambda: os.link('{victim}/gold', 'gold'))",
    ),
    "400 MB file": (
        "error",
        "f = open('big', 'wb')\nfor _ in range(400): f.write(bytes(2**20))\nprint('HARM')",
    ),
    "20,000 files": (
        "killed timeout",
        "for i in range(20_000): open(str(i), 'w').close()\ntime.sleep(0.5)\nprint('HARM')",
    ),
    "endless output": ("killed", "while True: print('x' * 1000)"),
    "endless errors": ("killed", "while True: print('x' * 1000, file=sys.stderr)"),
    "100 MB line": ("killed timeout", "print('x' * 10**8)"),
    "no UTF-8": ("ok", r"os.write(1, b'\xff\xfe\0\x80 end')"),
    "surrogate": ("ok", r"print('\udc80')"),
    "box, then exit": ("ok", r"print('\\boxed{{7}}'); os._exit(0)"),
    "sys.exit": ("ok", "sys.exit()"),
    "sys.exit(3)": ("error", "sys.exit(3)"),
    "long message": ("error", "raise ValueError('x' * 10**6)"),
    "unprintable exception": (
        "error",
        "class E(Exception):\n def __str__(self): raise E\nraise E",
    ),
    "kill": (
        "ok error killed",
        "for pid in (os.getppid(), {host}, 1):\n"
        " try: os.kill(pid, 19); os.kill(pid, 9)\n except OSError: pass",
    ),
    "kill -1": ("ok error killed", "os.kill(-1, 9)"),
    "daemon": (
        "ok",
        "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(1)\n"
        "  open('{victim}/late', 'w')\n  time.sleep(60)\n os._exit(0)\nos.wait()",
    ),
    "pipe holder": ("ok", "if os.fork() == 0: os.setsid(); time.sleep(60)"),
    "input": ("error", "input()"),
    "null pointer": ("killed", "ctypes.string_at(0)"),
    "system": ("ok", "ctypes.CDLL(None).system(b'touch {victim}/planted')"),
    "shell": ("ok", "attempt(lambda: subprocess.run('touch {victim}/planted', shell=True))"),
    "limits": (
        "ok",
        "for n in range(10):\n soft, hard = resource.getrlimit(n)\n if hard != -1:\n"
        "  attempt(lambda: resource.setrlimit(n, (hard + 1, hard + 1)))",
    ),
    "limits of the server": (
        "ok",
        "attempt(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3)))",
    ),
    "privileges": (
        "ok",
        "c = ctypes.CDLL(None)\nfor f, a in dict(chroot=(b'.',), unshare=(0x10000000,), mount=(b'x', "
        "b'.', b'tmpfs', 0, None), umount2=(b'.', 2), setuid=(0,), ptrace=(16, os.getppid(), 0, 0), "
        "shmget=(7, 64, 0o1777), setpriority=(0, 0, -5)).items():\n"
        " print('denied' if getattr(c, f)(*a) < 0 else 'HARM ' + f)",
    ),
    "spin in a thread": ("timeout killed", "def f():\n while True: pass\nthreading.Thread(target=f).start()"),
    "setitimer": ("timeout", "signal.setitimer(signal.ITIMER_REAL, 1000)\nwhile True: pass"),
    "stopped": ("timeout", "os.kill(os.getpid(), signal.SIGSTOP)"),
    "memory in sum": (
        "killed",
        "for n in range(12):\n if os.fork() == 0:\n  x = bytearray(150 * 2**20)\n"
        "  x[::4096] = bytes(len(x[::4096]))\n  time.sleep(9)\n  print('HARM')\n  os._exit(0)\n"
        "for n in range(12): os.wait()",
    ),
    "memory that is shared": (
        "ok",
        "x = bytearray(300 * 2**20)\nx[::4096] = bytes(len(x[::4096]))\n"
        "for n in range(8):\n if os.fork() == 0: time.sleep(0.4); os._exit(x[n])\n"
        "for n in range(8): os.wait()",
    ),
    "memory of no process": (
        "ok",
        "attempt(lambda: os.memfd_create('x'))\n"
        "print('HARM' if ctypes.CDLL(None).syscall(447, 0) >= 0 else 'denied')",
    ),
    "attributes outside": (
        "ok",
        "attempt(lambda: os.chmod('{victim}/gold', 0))\nattempt(lambda: os.utime('{victim}', (1, 1)))\n"
        "attempt(lambda: os.utime('{victim}/gold'))\n"
        "attempt(lambda: os.chown('{victim}/gold', -1, os.getgid()))\n"
        "c = ctypes.CDLL(None)\n"
        "for name in (b'{victim}', b'{victim}/gold'):\n"
        " for f, *a in ((c.chmod, 0), (c.utime, None), (c.removexattr, b'user.note')):\n"
        "  print('HARM' if f(name, *a) >= 0 else 'denied')\n"
        " print('HARM' if c.syscall(452, -100, name, 0, 0) >= 0 else 'denied')",
    ),
    "devices": (
        "ok",
        "for f in ('nvidia0', 'nvidiactl', 'mem', 'kmsg', 'vda', 'sda', 'tty', 'kvm'):\n"
        " attempt(lambda: open('/dev/' + f, 'rb'))",
    ),
}  # fmt: skip

# what a program may try to leave behind for the next one
PLANTS = (
    "open('sympy.py', 'w').write('1/0'); open('numpy.py', 'w').write('1/0')",
    "import builtins, sys; builtins.sum = lambda _: 0; sys.modules['sympy'] = None",
    "import sympy; sympy.sqrt = None; sympy.Integer.__add__ = None",
    "import atexit; atexit.register(print, 'planted')",
    "import os; os.environ['PLANTED'] = '1'; os.umask(0); os.chmod('.', 0o777)",
    "import os; os.makedirs('a/b'); os.symlink('/', 'a/b/c'); os.chmod('a', 0)",
    "import os\nfor _ in range(300): os.mkdir('d'); os.chdir('d')",
    "import os; os.setxattr('.', 'user.planted', b'1')",
    "import os; os.utime('.', (1, 1))",
    "import ctypes; print(ctypes.CDLL(None).shmget(77, 64, 0o1777))",
    "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))",
    "import random; random.seed(0); import decimal; decimal.getcontext().prec = 1",
    "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); signal.alarm(1)",
    "import os, time\nif not os.fork():\n time.sleep(0.2)\n open('planted', 'w')",
)
STATE = """
import ctypes, decimal, os, resource, signal, sys, time, sympy
print([abs(at - time.time()) < 9 for at in os.stat('.')[7:10]])
print(sum([1, 2]), sympy.sqrt(4) + 1, sympy.__file__, sorted(os.environ.items()), sorted(sys.modules))
print(os.listdir(), oct(os.umask(0)), oct(os.stat('.').st_mode), os.listxattr('.'), decimal.getcontext())
print([resource.getrlimit(n) for n in range(10)], [signal.getsignal(n) for n in range(1, 32)])
print(ctypes.CDLL(None).shmget(77, 64, 0))
"""


def processes(mark: str) -> list[str]:
    """State and command line, by its ends, of every process that has this text in the latter."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_text(errors="replace")
            if mark in command:
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                found.append(f"{name} {state} {command[:20]} ... {command[-120:]}")
        except OSError:
            continue
    return found


def attack(backend: str, victim: str) -> dict[str, object]:
    """Run every hostile program, two at a time; what they did and what they left."""
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    for listener in (tcp, udp):
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
    tcp.listen()
    secret = os.open(f"{victim}/gold", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)
    with suppress(OSError):  # not every file system has notes
        os.setxattr(victim, "user.note", b"1")
    root = str(Path(__file__).resolve().parents[2])
    names = {"victim": victim, "host": os.getpid(), "root": root, "secret": SECRET}
    names |= {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
    # in the command line of every process of these sandboxes, and of no other: ten digits
    mark = 2**30 + os.getpid()
    settings = {"memory_bytes": mark, "output_bytes": OUTPUT, "allow_plain": True}
    with (
        Sandbox(backend, timeout_s=SHORT_S, **settings) as short,
        Sandbox(backend, timeout_s=LONG_S, **settings) as long,
    ):
        for sandbox in (short, long):
            sandbox.run(["pass"] * 4)
        quiet = processes(str(mark))

        def timed(statuses: str, program: str) -> dict[str, object]:
            sandbox = short if "timeout" in statuses else long
            (done,) = sandbox.run([ATTEMPT + program.format(**names)])
            return {**vars(done), "late_s": done.seconds - sandbox.timeout_s}

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda case: timed(*case), HOSTILE.values()))
        ended = time.monotonic()
        while len(left := processes(str(mark))) > len(quiet) and time.monotonic() < ended + 1:
            time.sleep(0.02)
        time.sleep(max(0.0, ended + 1.2 - time.monotonic()))  # the daemon would have written
    with Sandbox(backend, timeout_s=LONG_S, workers=1, allow_plain=True) as sandbox:
        states: dict[str, list[str]] = {}
        # both kinds of servers, which are the same in every backend
        for kind in ("sympy", "scipy") if backend == "namespaces" else ("sympy",):
            states[kind] = [sandbox.run([f"{STATE}# {kind}"])[0].output]
            for plant in PLANTS:
                sandbox.run([f"{plant}\n# {kind}"])
                states[kind].append(sandbox.run([f"{STATE}# {kind}"])[0].output)
    heard = []
    for name, receive in (("tcp", tcp.accept), ("udp", lambda: udp.recv(9))):
        try:
            heard.append((name, str(receive())))
        except BlockingIOError:
            continue
    elsewhere = [f for f in ("/tmp", "/var/tmp", "/dev/shm", "/", root)
                 if os.path.exists(f"{f}/planted-{os.getpid()}")]  # fmt: skip
    return {
        "done": dict(zip(HOSTILE, done, strict=True)), "quiet": quiet, "left": left, "states": states,
        "victim": sorted(os.listdir(victim)), "elsewhere": elsewhere, "heard": heard,
        "after": processes(str(mark)), "user": os.getuid(),
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "plain" and landlock_abi() < 6:
        sys.exit("SandboxUnavailable: without landlock 6, plain lets programs signal their host")
    os.environ["SECRET"] = SECRET
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        print(json.dumps(attack(sys.argv[1], folder)))
