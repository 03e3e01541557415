"""The number of short programs that the sandbox runs in a second, without and with scipy."""

from core.bench.measure import Measure, seconds
from eval.sandbox import Sandbox

# template and number of programs; `{}` is replaced by the number of the program
WORK = {
    "programs": ("print({} ** 2)", 1000),
    "scipy programs": ("from scipy.special import comb; print(int(comb({}, 1)) ** 2)", 200),
}


def bench_sandbox() -> list[Measure]:
    """Measure one-line programs in the first sandbox that works, two at a time, after its start.

    Raises:
        SandboxUnavailable: no sandbox works here.
    """
    with Sandbox() as sandbox:
        return [rate(sandbox, name, *work) for name, work in WORK.items()]


def rate(sandbox: Sandbox, name: str, program: str, count: int) -> Measure:
    """Measure the programs a second of one kind."""
    sandbox.run([program.format(1)] * 4)  # both workers have started
    elapsed_s = seconds(lambda: check(sandbox, program, count))
    return Measure(name=f"{name} in {sandbox.backend}", unit="1/s", ours=count / elapsed_s)


def check(sandbox: Sandbox, program: str, count: int) -> None:
    """Run all programs and check that each printed the square of its own number.

    Raises:
        RuntimeError: a program printed something else.
    """
    executions = sandbox.run([program.format(i) for i in range(count)])
    wrong = [i for i, e in enumerate(executions) if e.output != f"{i**2}\n"]
    if wrong:
        raise RuntimeError(f"program {wrong[0]} printed {executions[wrong[0]]}")
