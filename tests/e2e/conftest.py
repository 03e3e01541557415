"""A tiny policy on disk and the shortest run there is, in a folder of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache

import forked_repro
import pytest
from typer.testing import CliRunner

from eval.sandbox import backends

SHORT = (
    "max_steps=3",
    "num_generations=4",
    "per_device_train_batch_size=8",
    "save_steps=1",
    "max_completion_length=12",
    "eval_max_tokens=12",
    "eval_limit=4",
    "at_k_samples=4",
    "at_k_limit=3",
    "heldout_problems=4",
    "heldout_every=2",
    "learning_rate=0.01",
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage"
)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, build_llama, tiny_tokenizer):
    """The folder of a random Llama of about 20 thousand parameters with its tokenizer."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    build_llama(max_position_embeddings=512).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def settings(tiny_model):
    """Overrides that make a run of seconds."""
    return (f"model={tiny_model}", *SHORT)


@pytest.fixture(scope="session")
def pip_install():
    """Build another distribution and install it into a folder: `pip_install(source, target)`."""

    def install(source, target):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--no-index", "--target", target, source], check=True)

    return install


@pytest.fixture(scope="session")
def forked(tmp_path_factory):
    """A program `repro` in a folder of its own, whose commands start without importing torch."""
    folder = tmp_path_factory.mktemp("bin")
    command = [sys.executable, forked_repro.__file__, folder / "socket"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == b"ready\n"
        yield forked_repro.write_program(folder, folder / "socket")
        server.kill()


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setenv("REPRO_PLUGINS", "")  # a command adds those that it is given
    return tmp_path


@pytest.fixture
def repro(root):
    """The command line in this process: `repro("run", ...)` gives exit code and outputs."""
    del root
    from core.cli.main import app

    def call(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return call


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """Run commands in a new folder, once per session: `run_once(("run", ...), ...)` returns the
    folder and the result of the last command. A test works on a copy of the folder."""
    from core.cli.main import app

    @cache
    def run(*commands):
        folder = tmp_path_factory.mktemp("once")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("REPRO_ROOT", str(folder))
            patch.setenv("REPRO_PLUGINS", "")
            results = [CliRunner().invoke(app, [str(a) for a in command]) for command in commands]
        assert all(result.exit_code == 0 for result in results), results[-1].output
        return folder, results[-1]

    return run


@pytest.fixture(scope="session")
def sandbox():
    """Skip a test that runs programs where no sandbox works."""
    states = {name: state for name, state in backends().items() if name != "plain"}
    if "works" not in states.values():
        pytest.skip(f"NO SANDBOX WORKS HERE: programs of answers are untested ({states})")


@pytest.fixture
def noisy(monkeypatch):
    """Every library that writes JSON, and so every command here, also prints."""
    write = json.dumps

    def dumps(*arguments, **rest):
        print("[INFO] a library says where it is")
        return write(*arguments, **rest)

    monkeypatch.setattr(json, "dumps", dumps)


@pytest.fixture
def start(root):
    """The command line in a process of its own: `start("run", ...)` gives the running process."""
    processes = []

    def launch(*arguments, **changes):
        process = subprocess.Popen(
            [sys.executable, "-m", "core.cli.main", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run started in the background ignores Ctrl-C, and its children would too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env={**os.environ, "REPRO_ROOT": str(root), "OMP_NUM_THREADS": "1"} | changes,
        )
        processes.append(process)
        return process

    yield launch
    for process in processes:
        process.kill()
        process.communicate()  # closes its pipes


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium with a profile of its own."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("NO BROWSER: the page was not looked at; install chromium and chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}", "--window-size=1000,900"):
        options.add_argument(flag)
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()
