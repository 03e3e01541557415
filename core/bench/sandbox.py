"""How many short programs a second the sandbox runs, without scipy and with it."""

from core.bench.measure import Measure, seconds
from eval.sandbox import Sandbox

# programs, and the number of each; `{}` is its own
WORK = {
    "programs": ("print({} ** 2)", 1000),
    "scipy programs": ("from scipy.special import comb; print(int(comb({}, 1)) ** 2)", 200),
}


def bench_sandbox() -> list[Measure]:
    """Programs of one line in the first sandbox that works, two at a time, its start left out.

    Raises:
        SandboxUnavailable: none works here.
    """
    with Sandbox() as sandbox:
        return [rate(sandbox, name, *work) for name, work in WORK.items()]


def rate(sandbox: Sandbox, name: str, program: str, count: int) -> Measure:
    """Programs a second of one kind."""
    sandbox.run([program.format(1)] * 4)  # both workers have started
    took = seconds(lambda: check(sandbox, program, count))
    return Measure(name=f"{name} in {sandbox.backend}", unit="1/s", ours=count / took)


def check(sandbox: Sandbox, program: str, count: int) -> None:
    """Run them all; each must print the square of its own number."""
    done = sandbox.run([program.format(i) for i in range(count)])
    wrong = [i for i, e in enumerate(done) if e.output != f"{i**2}\n"]
    if wrong:
        raise RuntimeError(f"program {wrong[0]} printed {done[wrong[0]]}")
