"""Hostile answers: no side effect, no hang, never right, and the process that graded is sound."""

import os
import signal
import struct
import sys
import time
from pathlib import Path

import pytest
from grader_clock import clock, deadline

from eval.grading import grade, grade_as_paper
from eval.grading.serve import cpu_timer
from eval.sets.problem import Problem

DEADLINE_S = 0.4  # here a fifth of the usual one: most of the time of these tests is spent at it
BOUND_S = DEADLINE_S + 1.0  # processor time for one verdict, of this process and the worker
HOSTILE = {
    "import": "__import__('os').system('touch {mark}')",
    "double quoted import": '__import__("os").system("touch {mark}")',
    "open": "open('{mark}', 'w').write('x')",
    "attribute chain": "().__class__.__base__.__subclasses__()[0].__init__.__globals__",
    "lambda": '(lambda: exec(\'open("{mark}", "w")\'))()',
    "sympy call": 'sympify(\'__import__("os").system("touch {mark}")\')',
    "latex input": r"\input{{/etc/passwd}} \write18{{touch {mark}}}",
    "format string": "{{0.__class__.__mro__}}%s%n%x" * 20,
    "power tower": "9^{{9^{{9^{{9^9}}}}}}",
    "python power tower": "9**9**9**9**9",
    "factorial": "99999999!",
    "nested factorial": "9!!!!!!!!",
    "binomial": r"\binom{{10^{{9}}}}{{5 \cdot 10^{{8}}}}",
    "3000 brackets": "(" * 3000 + "3" + ")" * 3000,
    "open brackets": "(" * 3000,
    "nested fractions": r"\frac{{1" * 60 + "3" + "}}{{2}}" * 60,
    "deep fractions": r"\frac{{1}}{{" * 30 + "3" + "}}" * 30,
    "nested integrals": r"\int_0^1 " * 12 + r"x^{{x^x}} dx" * 12,
    "sum": r"\sum_{{i=1}}^{{10^{{12}}}} \sum_{{j=1}}^{{i!}} j^{{i}}",
    "huge matrix": r"\begin{{pmatrix}}" + r"1 & 2 & 3 \\ " * 30 + r"4 \end{{pmatrix}}",
    "huger matrix": r"\begin{{pmatrix}}" + "1 & " * 20_000 + r"4 \end{{pmatrix}}",
    "power of a sum": "(x+y+z+1)^{{99999}}",
    "tower of roots": r"\sqrt{{" * 50 + "3" + "}}" * 50,
    "lone surrogates": "\ud800\udfff 3 \udc80",
    "NUL bytes": "3\x00\x00\x003",
    "newlines": "3\n" * 200 + "\r\x0b\x0c\x1c\u2028 3",
    "right to left": "\u202e\u20663\u2069 ٣ ३ 𝟑",
    "megabytes of digits": "7" * 3_000_000,
    "megabytes of decimals": "3." + "0" * 1_000_000 + "1",
    "exponent": "1e999999999",
    "megabytes of boxes": "\\boxed{{" * 200_000,
    "words": "is " * 500_000,
    "nan": "nan",
    "worker's own words": '"]\ntrue\n["strict", "3", "3"]',
}


@pytest.fixture(scope="module", autouse=True)
def started():
    """A worker with the deadline runs already: its start is no part of a verdict."""
    with deadline(DEADLINE_S):
        assert grade(r"\boxed{\sqrt{9}}", "3").correct is True
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_not_right_and_harms_nothing(name: str, tmp_path: Path):
    mark = tmp_path / "mark"
    text = HOSTILE[name].replace("{mark}", str(mark)).replace("{{", "{").replace("}}", "}")
    problem = Problem(id="p", question="what?", answer="33", solution=r"so \boxed{33}")
    here = os.getcwd(), sorted(os.listdir()), dict(os.environ), sys.getrecursionlimit()
    for output in (rf"\boxed{{{text}}}", text):
        for judge in (
            lambda o=output: grade(o, "33"),
            lambda o=output: grade_as_paper([o], [problem], listed=True)[0],
        ):
            began = clock()
            verdict = judge()
            assert clock() - began < BOUND_S
            assert not verdict.correct
    assert not mark.exists()
    assert here == (os.getcwd(), sorted(os.listdir()), dict(os.environ), sys.getrecursionlimit())
    assert [grade(rf"\boxed{{\sqrt{{{n * n}}}}}", "33").correct for n in (33, 34)] == [True, False]


def time_to_signal(answer: int) -> None:
    """Write to a pipe the processor seconds from setting the timer to 1 s until its signal."""
    began = time.process_time()
    signal.signal(
        signal.SIGPROF, lambda *_: os.write(answer, struct.pack("d", time.process_time() - began))
    )
    cpu_timer()(1)
    while time.process_time() - began < 2:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the timer is not exact")
def test_the_deadline_is_exact():
    """In processor time of the process itself, beside another that is busy too.

    A fork of a large process spends processor time before it sets the timer and while it ends.
    """
    answers, answer = os.pipe()
    pids = []
    for _ in range(2):
        pids.append(os.fork())
        if pids[-1] == 0:
            try:
                time_to_signal(answer)
            finally:
                os._exit(0)
    os.close(answer)
    for pid in pids:
        os.waitpid(pid, 0)
    with os.fdopen(answers, "rb") as file:
        measured = struct.unpack("dd", file.read())
    assert measured == pytest.approx((1, 1), abs=0.1)
