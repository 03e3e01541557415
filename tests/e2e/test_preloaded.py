"""Commands of `repro` forked from a process that has imported torch."""

import os
import subprocess
import sys

import pytest

from core.spread.pool import COMMAND, PYTHON, Unit, run_units
from core.spread.preloaded import Forked, can_fork


def run(*arguments, module=COMMAND, **variables):
    """Run a module in a forked process; return its exit code and its standard error."""
    receiving, sending = os.pipe()
    process = Forked(module, arguments, {**os.environ, **variables}, sending)
    os.close(sending)
    with os.fdopen(receiving) as lines:
        said = lines.read()
    return process.wait(), said


BARS = "from datasets.utils import are_progress_bars_disabled as off; print(off(), file=sys.stderr)"


@pytest.mark.parametrize("imports", ["import sys", "import sys, core.cli"])
def test_without_a_terminal_datasets_draw_no_progress_bars(imports, monkeypatch, capsys):
    monkeypatch.delenv("HF_DATASETS_DISABLE_PROGRESS_BARS", raising=False)
    program = f"{imports}; {BARS}"
    command = [sys.executable, "-c", program]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert alone == f"{'core' in imports}\n"
    run_units([Unit("bars", ("-c", program), PYTHON)], 1)
    assert "[bars] True" in capsys.readouterr().err


def test_exit_codes_and_messages_are_those_of_the_command():
    assert run("list") == (0, "")
    code, said = run("plan", "nobody")
    assert (code, "nobody" in said) == (2, True)


@pytest.mark.long
def test_a_module_that_the_parent_imports_runs_without_a_warning(tmp_path):
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import os\n"
        "from core.cli.main import app\n"
        "from core.spread.preloaded import Forked\n"
        "if __name__ == '__main__':\n"
        f"    raise SystemExit(Forked({COMMAND!r}, ('list',), dict(os.environ), 2).wait())\n"
    )
    done = subprocess.run([sys.executable, parent], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_has_the_given_environment_and_folder_and_a_session_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "shows.py").write_text(
        "import os, sys; print(os.getcwd(), os.environ['REPRO_ROOT'], sys.argv[1:], "
        "os.getsid(0) == os.getpid(), 'torch' in sys.modules, file=sys.stderr)"
    )
    monkeypatch.syspath_prepend(tmp_path / "package")
    code, said = run("a", "b c", module="shows", REPRO_ROOT="here")
    assert (code, said.split("\n")[0]) == (0, f"{tmp_path} here ['a', 'b c'] True True")


def test_a_signal_is_a_negative_exit_code():
    receiving, sending = os.pipe()
    process = Forked("http.server", ("0",), dict(os.environ), sending)
    os.close(sending)
    assert process.poll() is None
    process.kill()
    assert process.wait() == -9
    os.close(receiving)


def test_another_environment_needs_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr("core.spread.preloaded.started_with", {})
    variables = {"HOME": "here", "REPRO_ROOT": "a"}
    assert can_fork(variables)
    assert can_fork({**variables, "REPRO_ROOT": "b"})
    assert not can_fork({**variables, "HF_HOME": "elsewhere"})
    assert not can_fork({"REPRO_ROOT": "a"})


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_a_torch_for_gpus_is_not_forked(monkeypatch, kind):
    monkeypatch.setattr("core.spread.preloaded.started_with", {})
    monkeypatch.setattr(f"torch.version.{kind}", "13.0")
    assert not can_fork({"HOME": "here"})
