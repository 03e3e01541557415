"""A server that is busy, breaks off or talks nonsense loses no answer, and no key is told."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from faulty_server import faulty_server

from core.errors import EngineError
from core.rollout.completions_server import Server
from core.samplers.journal import Journal
from core.samplers.served import ChatSampler, CompletionsSampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding

PROMPTS = [f"what is {i} + {i}?" for i in range(20)]
DECODING = Decoding(max_tokens=9)
KEY = "sk-0123456789abcdef"
BUSY, AWAY, WAIT = (429, {}), (503, {}), (429, {"Retry-After": "1"})
PASSING = [BUSY, AWAY, "drop", "cut", "garbled", (500, {}), "slow", WAIT, "drop"]


def server(url, *, timeout_s=0.5, patience_s=20.0, key=None):
    return Server(url, timeout_s=timeout_s, patience_s=patience_s, key=key)


@pytest.fixture
def sampler(tiny_tokenizer):
    """Make a sampler of an interface at an address."""

    def make(found, api="completions", **options):
        if api == "chat":
            return ChatSampler(server(found.url, **options), "m")
        return CompletionsSampler(server(found.url, **options), "m", tiny_tokenizer)

    return make


def texts(completions):
    return [one.text for row in completions for one in row]


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_chat_is_asked_with_the_system_prompt_as_a_turn(system, sampler):
    with faulty_server() as sound:
        sampler(sound, "chat")(PROMPTS[:1], replace(DECODING, system=system))
        ((*_, body),) = sound.asked
    user = {"role": "user", "content": PROMPTS[0]}
    told = [] if system is None else [{"role": "system", "content": system}]
    assert body["messages"] == [*told, user]


@pytest.fixture(scope="module")
def expected(tiny_tokenizer):
    with faulty_server() as sound:
        ask = CompletionsSampler(server(sound.url), "m", tiny_tokenizer)
        return texts(ask(PROMPTS, DECODING))


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_every_fault_that_passes_is_waited_out(api, sampler, capsys):
    with faulty_server() as sound:
        straight = texts(sampler(sound, api)(PROMPTS, DECODING))
    with faulty_server(*PASSING) as faulty:
        assert texts(sampler(faulty, api)(PROMPTS, DECODING)) == straight
        assert len(faulty.asked) == len(PROMPTS) + len(PASSING)
        assert capsys.readouterr().err.count("asking again") == 1
    assert len(set(straight)) == len(PROMPTS)


@pytest.mark.parametrize("fault", [WAIT, (503, {"Retry-After": "1"})])
def test_the_wait_that_a_server_asks_for_is_kept(fault, sampler):
    with faulty_server(fault) as faulty:
        sampler(faulty)(PROMPTS[:1], DECODING)
    (first, *_), (second, *_) = faulty.asked
    assert second - first >= 1.0


def test_a_wait_beyond_all_patience_ends_the_run_at_once(sampler):
    with faulty_server((429, {"Retry-After": "3600"})) as faulty:
        with pytest.raises(EngineError, match=r"429 .*asks to wait 3600 s"):
            sampler(faulty)(PROMPTS[:1], DECODING)
        assert len(faulty.asked) == 1


def test_nonsense_is_asked_for_three_times(sampler):
    with faulty_server(*["garbled"] * 9) as faulty:
        with pytest.raises(EngineError, match="answered /v1/completions with no JSON"):
            sampler(faulty)(PROMPTS[:1], DECODING)
        assert len(faulty.asked) == 3


@pytest.mark.parametrize(
    ("fault", "words"), [("stop", "died or broke off"), ((400, {}), "refused /v1/completions: 400")]
)
def test_what_was_answered_before_the_end_is_not_asked_again(
    fault, words, sampler, expected, tmp_path
):
    """Six requests are answered in the first run, whichever; the second asks for the others."""
    sound = [None] * 6
    with faulty_server(*sound, fault) as faulty, Journal(tmp_path / "j", {}) as journal:
        first = sampler(faulty, patience_s=0.3).with_journal(journal)
        with pytest.raises(EngineError, match=words):
            first(PROMPTS, DECODING)
        kept = len(journal.batches)
        answered = 6 if fault == "stop" else len(PROMPTS) - 1
        assert 6 <= kept <= answered
    with faulty_server() as again, Journal(tmp_path / "j", {}) as journal:
        assert texts(sampler(again).with_journal(journal)(PROMPTS, DECODING)) == expected
        assert len(again.asked) == len(PROMPTS) - kept


def test_a_refusal_ends_the_run_though_others_wait(sampler):
    faults = (AWAY, AWAY, AWAY, (400, {}), *[AWAY] * 1000)
    with faulty_server(*faults) as faulty, pytest.raises(EngineError, match="400"):
        sampler(faulty, patience_s=600.0)(PROMPTS, DECODING)


def test_a_chat_is_one_user_turn_and_has_no_start(sampler):
    with faulty_server() as found:
        ask = sampler(found, "chat")
        ask(["1 + 1"], Decoding(max_tokens=7, samples=2, temperature=0.5, stop=("x",)))
        bodies = [body for *_, body in found.asked]
    assert Counter(path for _, path, *_ in found.asked) == {"/v1/chat/completions": 2}
    assert {body.pop("seed") for body in bodies} != {bodies[0].get("seed")}
    assert (
        bodies[0]
        == bodies[1]
        == {
            "model": "m",
            "messages": [{"role": "user", "content": "1 + 1"}],
            "max_tokens": 7,
            "temperature": 0.5,
            "top_p": 1.0,
            "stop": ["x"],
        }
    )
    with pytest.raises(BadValue, match="user messages alone"):
        ask(["1 + 1"], DECODING, ["So"])


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OTHER_KEY"])
def test_the_key_goes_to_the_server_and_nowhere_else(variable, repro, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv(variable, KEY)
    named = () if variable == "OPENAI_API_KEY" else ("--api-key-env", variable)
    command = ("eval", "some-model", "--benchmarks", "pocket-math", "--limit", 3, "--api", "chat")
    command = (*command, "--out", tmp_path / "out", *named)
    with faulty_server((401, {})) as faulty:
        refused = repro(*command, "--server", f"{faulty.url}/v1")
        journal = files_of(tmp_path / "out")
        done = repro(*command, "--server", f"{faulty.url}/v1")
        assert {headers["Authorization"] for _, _, headers, _ in faulty.asked} == {f"Bearer {KEY}"}
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "401" in refused.stderr
    assert "***" in refused.stderr
    assert done.exit_code == 0, done.output
    files = files_of(tmp_path / "out")
    assert json.loads(files["pocket-math.json"])["asked"]["api"] == "chat"
    for text in (*journal.values(), *files.values(), refused.output.encode(), done.output.encode()):
        assert KEY.encode() not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--api", "chat"), "--api goes with --server"),
        (("--api-key-env", "A_KEY"), "--api-key-env goes with --server"),
        (("--server", "http://h", "--api", "responses"), "expected completions or chat"),
        (
            ("--server", "http://h", "--api", "chat", "--mode", "tir"),
            "--mode tir needs completions",
        ),
        (
            ("--server", "http://h", "--api-key-env", "NO_KEY"),
            "no key in this environment variable",
        ),
        (("--server", "http://h", "--api-key-env", "BAD_KEY"), "characters that no request can"),
    ],
)
def test_what_a_server_cannot_be_asked_is_one_line(options, message, repro, monkeypatch):
    monkeypatch.setenv("BAD_KEY", "sk-\u00e4\u00f6")
    result = repro("eval", "some-model", "--benchmarks", "pocket-math", *options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert "\u00e4" not in result.stderr
