"""An evaluation through a real OpenAI-compatible server gives the scores of the model itself."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import EngineError
from core.models.folders import locate
from core.models.load import load_tokenizer
from core.rollout.completions_server import Server
from core.samplers.served import CompletionsSampler
from eval.samples.evaluation import Decoding
from eval.samples.prompted_samples import PromptedSample, read_graded

SUITE = ["--benchmarks", "pocket-gsm8k", "--limit", "12"]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """`transformers serve` on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("transformers"))
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as file:
        process = subprocess.Popen([program, "serve", *where], stdout=file, stderr=file)
    try:
        address = f"http://127.0.0.1:{port}"
        Server(address, timeout_s=300).wait()
        yield address
    finally:
        process.kill()
        process.wait()


def outputs(folder: Path) -> dict[str, tuple[str, int, bool]]:
    """Text, tokens and whether the limit cut it, of every kept sample."""
    rows = read_graded(folder / "pocket-gsm8k.jsonl.gz", PromptedSample)
    return {row.id: (row.output, row.tokens, row.truncated) for row in rows}


def test_greedy_answers_and_scores_are_those_of_the_model_itself(repro, url, tmp_path):
    found, there = {}, ("--server", f"{url}/v1")
    for name, more in (("here", ()), ("there", there), ("chat", (*there, "--api", "chat"))):
        done = repro("eval", "pocket-instruct", *SUITE, "--out", tmp_path / name, "--json", *more)
        assert done.exit_code == 0, done.output
        found[name] = json.loads(done.stdout)
    assert found["here"] == found["there"] == found["chat"]
    assert outputs(tmp_path / "here") == outputs(tmp_path / "there") == outputs(tmp_path / "chat")


@pytest.fixture
def sampler(url):
    tokenizer = load_tokenizer("pocket-instruct")
    return CompletionsSampler(Server(url, timeout_s=300), locate("pocket-instruct"), tokenizer)


def test_an_answer_ends_before_its_stop_string(sampler):
    (whole,), (cut,) = (
        sampler(["What is 12 + 7?"], Decoding(max_tokens=40, stop=stop))[0] for stop in ((), ("=",))
    )
    assert not whole.stopped
    assert "=" in whole.text
    assert cut.stopped
    assert cut.text == whole.text.partition("=")[0]


def test_a_server_that_does_not_sample_is_refused(sampler):
    with pytest.raises(EngineError, match="the same text, though asked for a temperature"):
        sampler(["What is 12 + 7?"], Decoding(samples=17, temperature=1.5, max_tokens=2))


def test_samples_are_drawn_apart(sampler, tmp_path):
    folder = tmp_path / "sampling"
    shutil.copytree(sampler.model, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "do_sample": True}))
    sampler.model = str(folder)
    (answers,) = sampler(["What is 12 + 7?"], Decoding(samples=17, temperature=1.5, max_tokens=8))
    assert len({answer.text for answer in answers}) > 1
    assert all(answer.tokens == 8 for answer in answers if answer.truncated)


def test_a_server_that_cannot_answer_is_one_line(repro, sampler, tmp_path):
    gone = "http://127.0.0.1:9"
    done = repro("eval", "pocket-instruct", *SUITE, "--server", gone)
    assert done.exit_code == 2
    assert "broke off" in done.output
    (tmp_path / "empty").mkdir()
    sampler.model = str(tmp_path / "empty")
    with pytest.raises(EngineError, match="refused /v1/completions"):
        sampler(["1 + 1"], Decoding(max_tokens=3))
