"""What surrounds a command ends it in at most a line: closed pipes, Ctrl-C, deleted folders."""

import os
import re
import signal
import subprocess
import sys

import pytest
from test_terminal import CODES, in_terminal

REPRO = (sys.executable, "-m", "core.cli.main")
TYPED = " ".join(REPRO)


def typed(line, folder):
    """The exit codes of the commands of a pipe, and what they said, as a person types it."""
    line = f"cd {folder}; {line.replace('repro', TYPED)}; echo ${{PIPESTATUS[@]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    *shown, codes = done.stdout.splitlines()
    return [*map(int, codes.split())], shown, done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "repro list --json | true",
        "repro list --help | true",
        "repro --version | true",
        "repro show gspo | true",
        "repro list 2>&1 | true",
        "repro run gspo nothing=1 2>&1 | true",
    ],
)
def test_a_closed_pipe_ends_a_command_without_a_word(line, root):
    codes, _, said = typed(line, root)
    assert codes == [128 + signal.SIGPIPE, 0]
    assert said == ""


def test_a_pipe_that_takes_all_before_it_is_closed_is_no_failure_either(root):
    (code, _), _, said = typed("repro list --json | head -c 10 > /dev/null", root)
    assert code in (0, 128 + signal.SIGPIPE)
    assert said == ""


def test_a_pipe_that_is_read_to_its_end_is_no_closed_one(root):
    codes, _, said = typed("repro list | cat > /dev/null", root)
    assert (codes, said) == ([0, 0], "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("repro list >&-", 0),
        ("repro list <&- 2>&- | grep -c dapo", 0),
        ("repro --quiet list >&- 2>&- <&-", 0),
        ("repro show nothing >&- 2>&-", 2),
        ("repro show nothing 2>&-", 2),
    ],
)
def test_closed_streams_are_the_null_device(line, code, root):
    codes, _, said = typed(line, root)
    assert codes[0] == code
    assert codes[1:] in ([], [0])
    assert "Traceback" not in said


@pytest.mark.parametrize("line", ["repro list > /dev/full", "repro --help > /dev/full"])
def test_a_full_disk_is_one_line(line, root):
    codes, _, said = typed(line, root)
    assert codes == [2]
    assert said == "No space left on device; make room, and give the same command again\n"


@pytest.mark.parametrize(
    "command", ["list", "show gspo", "plan gspo", "run gspo", "--plugin mine.py list", "doctor"]
)
def test_a_deleted_working_directory_is_one_line(command, root):
    line = f"mkdir gone; cd gone; rmdir ../gone; repro {command}"
    codes, shown, said = typed(line, root)
    assert (codes, shown) == ([2], [])
    assert said == "the working directory does not exist any more; change to another one\n"


@pytest.mark.parametrize(
    "module", ["core.stages.kernels", "core.cli.output", "typer.core", "core.cli.running", "torch"]
)
def test_ctrl_c_while_modules_are_imported_is_at_most_a_line(module, root):
    command = [sys.executable, "-X", "importtime", *REPRO[1:], "run", "gspo"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "REPRO_ROOT": str(root)},
        # A test run started in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        stderr = process.stderr or ()
        imported = re.compile(rf"import time: .*\| +{re.escape(module)}(\.\w+)*\n")
        assert any(imported.match(line) for line in stderr)
        process.send_signal(signal.SIGINT)
        left = [line for line in stderr if not line.startswith("import time: ")]
    assert process.returncode == 130
    assert [line for line in left if not line.startswith(("loading ", "interrupted: "))] == []


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_terminal_without_width_shows_as_much_as_any(columns):
    shown = CODES.sub("", in_terminal(*REPRO, "list", "--family", "ppo", columns=columns))
    assert "repro-papers" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
