"""Benchmarks from the hub: the real client against a small server that speaks the hub's API."""

import hashlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pandas
import pytest

from eval.sets.benchmarks import find_benchmark

COMMIT = "0" * 40
SOLUTION = "She sells 2 * 500 = 1,000 of them.\n#### 1,000"
STORY = {"question": "How many?", "answer": SOLUTION}
MGSM = {"question": "多少？", "answer": None, "answer_number": 18, "equation_solution": None}
BOXED = {"id": 60, "problem": "Find $x$.", "solution": r"\boxed{204}", "url": "https://x"}
PLAIN = {"problem": "Find $x$.", "answer": "70", "id": "0"}
CASES = {  # as the hub's repositories hold them: configuration, files by split, a row, its answer
    "gsm8k": ("main", "main/{}-00000-of-00001.parquet", STORY, "1000"),
    "gsm8k-platinum": ("main", "main/{}-00000-of-00001.parquet", STORY, "1000"),
    "mgsm_zh": ("zh", "zh/{}-00000-of-00001.parquet", MGSM, "18"),
    "aime24": (None, "{}-00000-of-00001.parquet", BOXED, "204"),
    "aime25": (None, "{}.jsonl", PLAIN, "70"),
}
LOAD = """
import json, sys
from dataclasses import asdict
from eval.sets.benchmarks import find_benchmark
from eval.errors import ReproError
for name in sys.argv[1:]:
    try:
        print(json.dumps([asdict(problem) for problem in find_benchmark(name).load()]))
    except ReproError as error:
        print(json.dumps(str(error)))
"""

AWAY = """
from huggingface_hub.utils import _http
from core.models.load import load_policy, load_tokenizer
from eval.errors import MissingFile
_http.time.sleep = lambda s: print("wait")
for load in (load_policy, load_tokenizer):
    print("load")
    try:
        load("me/nothing")
    except MissingFile as error:
        print(error)
"""


@dataclass(frozen=True)
class Repository:
    """The files of one data set, and its card."""

    files: dict[str, bytes]

    def entries(self):
        return [
            {"type": "file", "path": path, "size": len(text), "oid": hashlib.sha1(text).hexdigest()}
            for path, text in self.files.items()
        ]


def repository(name, rows):
    """The data set of a benchmark with two splits; configurations are named in the card."""
    config, path, row, _ = CASES[name]
    files = {}
    for split, count in (("train", 2), ("test", rows)):
        frame = pandas.DataFrame([row] * count)
        buffer = io.BytesIO()
        if path.endswith("parquet"):
            frame.to_parquet(buffer)
        else:
            frame.to_json(buffer, orient="records", lines=True)
        files[path.format(split)] = buffer.getvalue()
    splits = "".join(f"  - split: {s}\n    path: {path.format(s)}\n" for s in ("train", "test"))
    card = f"---\nconfigs:\n- config_name: {config or 'default'}\n  data_files:\n{splits}---\n"
    return Repository({"README.md": card.encode(), **files})


class Hub(ThreadingHTTPServer):
    """Serves data sets by their ids."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}


class Handler(BaseHTTPRequestHandler):
    """What `datasets` asks of the hub: a set's revision, its file list, its files."""

    server: Hub

    def do_GET(self):
        path = unquote(urlsplit(self.path).path).strip("/")
        for name, found in self.server.repositories.items():
            api, file = path.removeprefix(f"api/datasets/{name}"), f"datasets/{name}/resolve/"
            if api in ("", "/revision/main", f"/revision/{COMMIT}"):
                return self.answer({"id": name, "sha": COMMIT, "siblings": []})
            if api.startswith(f"/tree/{COMMIT}"):
                under = api.removeprefix(f"/tree/{COMMIT}").strip("/")
                return self.answer([e for e in found.entries() if e["path"].startswith(under)])
            if path.startswith(file):
                _, _, wanted = path.removeprefix(file).partition("/")
                if wanted in found.files:
                    return self.answer(found.files[wanted])
                return self.answer(b"", 404, "EntryNotFound")
        return self.answer(b"", 404, "RepoNotFound")

    do_HEAD = do_GET

    def do_POST(self):
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        for name, found in self.server.repositories.items():
            if self.path == f"/api/datasets/{name}/paths-info/{COMMIT}":
                entries = [e for e in found.entries() if e["path"] in body.get("paths", [])]
                return self.answer(entries)
        return self.answer(b"", 404, "RepoNotFound")

    def answer(self, content, status=200, error=None):
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(text).hexdigest()}"')
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_):
        """Say nothing of each request."""


@pytest.fixture
def hub():
    """A hub without data sets; `hub.repositories[id] = repository(...)` adds one."""
    server = Hub()
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def online(hub, tmp_path):
    """Run Python in a process that finds this hub, without local data: `online("-c", ...)`."""
    env = {name: value for name, value in os.environ.items() if name != "REPRO_DATA"} | {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }

    def run(*arguments, **changes):
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, env=env | changes, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def loaded(online, *names, **changes):
    """What `Benchmark.load` gives for each: its problems, or its error as a text."""
    done = online("-c", LOAD, *names, **changes)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sets_of_the_hub_are_loaded_and_kept(hub, online):
    """Also without the hub, once they are in the cache."""
    for name in CASES:
        benchmark = find_benchmark(name)
        hub.repositories[benchmark.hub.id] = repository(name, benchmark.n)
    found = dict(zip(CASES, loaded(online, *CASES), strict=True))
    for name, problems in found.items():
        _, _, row, answer = CASES[name]
        benchmark = find_benchmark(name)
        assert [p["id"] for p in problems] == [f"{name}-test-{i}" for i in range(benchmark.n)]
        for problem in problems:
            assert problem["question"] == (row.get("question") or row["problem"])
            assert (problem["answer"], problem["language"]) == (answer, benchmark.language)
    hub.repositories.clear()
    assert loaded(online, *CASES, HF_HUB_OFFLINE="1") == list(found.values())


def test_sets_that_are_not_what_they_should_be_are_refused(hub, online):
    program = {"mgsm.py": b"", **repository("mgsm_zh", 250).files}
    cut = {path: text[:200] for path, text in repository("aime24", 30).files.items()}
    hub.repositories = {
        "openai/gsm8k": repository("gsm8k", 1318),
        "HuggingFaceH4/MATH-500": repository("aime25", 500),
        "juletxara/mgsm": Repository(program),
        "math-ai/aime24": Repository(cut),
    }
    names = ("gsm8k", "math500", "mgsm_zh", "aime24", "amc23")
    few, columns, scripted, damaged, unknown = loaded(online, *names)
    assert few.startswith("DamagedFile: openai/gsm8k: 1318 problems, expected 1319")
    assert "its columns are ['answer', 'id', 'problem']" in columns
    for name, error, why in (
        ("mgsm_zh", scripted, "but found mgsm.py"),
        ("aime24", damaged, "Parquet magic bytes not found"),
        ("amc23", unknown, "doesn't exist on the Hub"),
    ):
        assert error.startswith(f"MissingFile: {name}: cannot load ")
        assert why in error
        assert error.endswith("give a folder in REPRO_DATA (or --data, where it is)")
        assert "\n" not in error


def test_a_model_of_a_hub_that_is_away_is_asked_for_once(tmp_path):
    """Of the tries of the hub's client nothing is said, and no second file is tried for."""
    away = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", AWAY], env=os.environ | away, capture_output=True, text=True
    )
    assert (done.returncode, "Retrying" in done.stderr) == (0, False), done.stderr
    for said in done.stdout.split("load\n")[1:]:
        *waits, error = said.splitlines()
        assert error.startswith("MissingFile: me/nothing: cannot be had from the hub")
        assert 0 < waits.count("wait") <= 5  # as often as the client tries for one file
    assert done.stdout.count("load\n") == 2


def test_a_command_without_the_hub_is_one_line(online, tmp_path):
    (tmp_path / "outputs.jsonl").write_text('{"id": "a", "output": "1"}\n')
    command = ("-m", "core.cli.main", "score", "outputs.jsonl", "--benchmark", "cmath")
    done = online(*command, HF_HUB_OFFLINE="1")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("MissingFile: cmath: cannot load weitianwen/cmath from the hub")
