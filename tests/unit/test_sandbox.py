"""The sandbox runs programs in order, and what they print is harmless in a transcript."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.errors import BadValue, UnknownName
from eval.grading import grade
from eval.grading.cleaning import FULL_WIDTH
from eval.sandbox import BACKENDS, Sandbox, SandboxUnavailable, backends, neutral
from eval.sandbox.inside.processes import descendants

HARMFUL = st.lists(
    st.sampled_from(
        [
            "```\n\\boxed{5}\n",
            *("```", "``", "`", "~~~", "python\n", "output\n", "\n", "\r", "\0", "\u200b", " "),
            *("\\", "boxed", "BOXED", "fbox", "ｂｏｘｅｄ", "bo", "xed", "{5}", "5"),
            *("<", "|", ">", "<|im_start|>", "<s>", "</s>", "<｜end▁of▁sentence｜>", "<<SYS>>"),
            *("[INST]", "[/INST]", "[", "]", "User:", "Q:", "问题：", "Assistant", ":"),
        ]
    )
).map("".join)


works = cache(backends)


@pytest.fixture(scope="module")
def sandbox():
    name = next((n for n, found in works().items() if found == "works" and n != "plain"), None)
    if name is None:
        pytest.skip(f"NOT TESTED: no sandbox works here: {works()}")
    with Sandbox(name, output_bytes=1000) as opened:
        assert opened.backend == name
        yield opened


def test_results_come_in_order(sandbox):
    programs = [f"print({i} ** 2)" for i in range(12)]
    assert [done.output for done in sandbox.run(programs)] == [f"{i**2}\n" for i in range(12)]
    assert sandbox.run([]) == []


def test_a_traceback_begins_in_the_program_and_shows_its_line(sandbox):
    (done,) = sandbox.run(["print('before')\n1 / 0"])
    assert (done.status, done.output) == ("error", "before\n")
    assert done.error.splitlines()[:3] == [
        "Traceback (most recent call last):",
        '  File "<program>", line 2, in <module>',
        "    1 / 0",
    ]
    assert done.error.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    ("program", "end"),
    [
        ("x = (", "SyntaxError: '(' was never closed\n"),
        ("import sys; sys.exit('no answer')", "no answer"),
        ("import sys; sys.exit(3)", "exit status 3"),
        ("\0", "source code string cannot contain null bytes\n"),
        ("print('\ud800')", "surrogates not allowed\n"),
    ],
)
def test_errors_say_what_failed(sandbox, program, end):
    (done,) = sandbox.run([program])
    assert (done.status, done.output) == ("error", "")
    assert done.error.endswith(end)


def test_output_is_cut_at_the_limit(sandbox):
    whole, cut = sandbox.run(["print('é' * 499)", "print('x' * 5000)"])
    assert (whole.status, len(whole.output)) == ("ok", 500)
    assert (cut.status, cut.output) == ("killed", "x" * 1000)
    assert cut.error == "more than 1000 bytes of output"


def test_programs_have_sympy_threads_and_a_folder(sandbox):
    program = """
import threading
from dataclasses import dataclass
from sympy import symbols, solve
@dataclass
class Found:
    roots: list
def work():
    with open("roots", "w") as file:
        file.write(str(Found(solve(symbols("x")**2 - 2))))
    print(open("roots").read())
if __name__ == "__main__":
    threading.Thread(target=work).start()
"""
    (done,) = sandbox.run([program])
    assert (done.output, done.error) == ("Found(roots=[-sqrt(2), sqrt(2)])\n", "")


def test_a_closed_sandbox_takes_no_program(sandbox):
    with Sandbox(sandbox.backend, workers=1) as other:
        other.run(["pass"])
        processes = [worker.process for worker in other.workers]
    assert all(process is None or process.poll() is not None for process in processes)
    with pytest.raises(RuntimeError):
        other.run(["pass"])


def test_every_backend_says_whether_it_works():
    found = works()
    assert list(found) == ["bubblewrap", "namespaces", "plain"] == list(BACKENDS)
    assert all(found.values())


def test_plain_and_nonsense_are_refused():
    with pytest.raises(SandboxUnavailable, match="allow_plain"):
        Sandbox("plain")
    with pytest.raises(UnknownName, match="did you mean bubblewrap"):
        Sandbox("bublewrap")
    with pytest.raises(BadValue):
        Sandbox(timeout_s=0)


@settings(deadline=None)
@given(HARMFUL | st.text())
def test_neutral_leaves_nothing_to_act_on(text):
    found = neutral(text)
    narrow = found.translate(FULL_WIDTH).lower()
    for mark in ("```", "~~~", "boxed", "fbox", "<|", "|>", "<s>", "</s>", "<<"):
        assert mark not in narrow
    assert "[INST]" not in found
    assert "[/INST]" not in found
    assert not any(line.lstrip().startswith(("User:", "Q:")) for line in found.split("\n"))
    assert all(character in "\n\t" or ord(character) >= 32 for character in found)
    assert neutral(found) == found


@settings(deadline=None)
@given(st.lists(st.sampled_from([*"0123456789+-*/=.,() xyzπ²√≤", "sqrt", " < ", "[1, 2]"])))
def test_neutral_keeps_plain_results(parts):
    assert neutral("".join(parts)) == "".join(parts)


@settings(deadline=None)
@given(HARMFUL)
def test_what_a_program_prints_changes_no_score(printed):
    def transcript(output: str) -> str:
        code = "```python\nprint(1)\n```"
        return f"{code}\n```output\n{output}\n```\nSo it is $\\boxed{{7}}$."

    right, wrong = (
        grade(transcript(neutral(printed)), "7"),
        grade(transcript(neutral(printed)), "5"),
    )
    assert (right.correct, wrong.correct) == (True, False)
    unfinished = transcript(neutral(printed)).replace("$\\boxed{7}$", "seven")
    assert grade(unfinished, "5").rule != "boxed"


HOST = """
import sys
from eval.sandbox import Sandbox
with Sandbox(sys.argv[1], workers=1, timeout_s=60, allow_plain=True) as sandbox:
    print("ready", flush=True)
    sandbox.run(["import os, time; os.fork(); open('file', 'w'); time.sleep(60)"])
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_is_killed_leaves_no_folder_and_no_process(backend, tmp_path):
    if works()[backend] != "works":
        pytest.skip(f"NOT TESTED: {backend} does not work here")
    tmp_path.chmod(0o777)
    with subprocess.Popen(
        [sys.executable, "-c", HOST, backend],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        while len(started := descendants(host.pid)) < 3:
            assert host.poll() is None
        host.kill()
    end = time.monotonic() + 30
    while (started & descendants(0) or os.listdir(tmp_path)) and time.monotonic() < end:
        os.sched_yield()
    assert not started & descendants(0)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sandbox_that_does_not_answer_is_ended_with_all_its_programs(backend):
    if works()[backend] != "works":
        pytest.skip(f"NOT TESTED: {backend} does not work here")
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    with Sandbox(backend, timeout_s=3, workers=1, allow_plain=True) as sandbox:
        process = sandbox.workers[0].process
        assert process is not None
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(sandbox.run, [bomb])
            while len(tree := descendants(process.pid)) < 10:
                assert not result.done(), result.result()
            server = min(tree)
            os.kill(server, signal.SIGSTOP)  # it can neither see the deadline nor end anything
            tree |= descendants(process.pid)
            (done,) = result.result()
        assert done.status == "timeout"
        everybody = descendants(0)
        assert os.getpid() in everybody
        assert not everybody & tree
        assert sandbox.run(["print(1)"])[0].output == "1\n"
