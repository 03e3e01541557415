"""Answers of a server that are not what OpenAI's interface gives are refused in one line."""

import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cli.finding import runs
from core.errors import EngineError
from core.rollout.bounded_http import LARGEST
from core.rollout.completions_server import Server
from core.rollout.on_vllm.engine import parse_completion
from core.rollout.on_vllm.server import VllmServer
from core.samplers.served import ChatSampler
from eval.errors import UnknownName

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=5,
)
SOUND = {
    "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 1},
}


class Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self):
        self.server.asked.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with suppress(OSError):  # whoever asked has left
            for piece in self.server.pieces:
                self.wfile.write(piece)
                self.server.over.wait(self.server.pause_s)

    do_GET = do_POST

    def log_message(self, *_, **__):
        pass


class RawServer(ThreadingHTTPServer):
    """Answers every request with the same pieces and a pause after each; `asked` has the paths."""

    def __init__(self, *pieces, pause_s=0.0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pieces, self.pause_s, self.asked, self.over = pieces, pause_s, [], Event()
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()


def response(body, status="200 OK", *headers):
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def answer(content):
    return response(json.dumps(content).encode())


@pytest.fixture
def serving():
    """Start servers."""
    servers = []

    def start(*pieces, **options):
        servers.append(RawServer(*pieces, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


@pytest.fixture(scope="module")
def any_server():
    server = RawServer()
    yield server
    server.end()


def ask(server, **options):
    return ChatSampler(Server(server.url, timeout_s=10, **options), "m").ask({"messages": []})


def refusal(call):
    with pytest.raises(EngineError) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000
    return line


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("choices", 0, "message", "content"), value) for value in (7, {}, [], 0, "\ud800")),
        *(
            (("usage", "completion_tokens"), value)
            for value in (-1, 2**31, True, 1.5, 1e999, "1", None)
        ),
        *((("choices", 0, "finish_reason"), value) for value in (None, 7, ["stop"], {})),
        *((("choices", 0, "stop_reason"), value) for value in (True, 1.5, ["a"], {})),
        *((path, value) for path in (("choices",), ("usage",)) for value in (None, 7, [], "a", {})),
    ],
)
def test_an_answer_has_the_types_of_the_interface(serving, path, value):
    content = json.loads(json.dumps(SOUND))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    body = json.dumps(content).replace("Infinity", "1e999").encode()
    line = refusal(lambda: ask(serving(response(body))))
    assert "expected choices and usage" in line


@pytest.mark.parametrize("stop", ["###", 151645, None])
def test_an_answer_may_say_what_stopped_it(serving, stop):
    content = {**SOUND, "choices": [{**SOUND["choices"][0], "stop_reason": stop}]}
    assert ask(serving(answer(content)))["stop"] == stop


@given(JSON)
def test_any_json_is_an_answer_or_refused(any_server, content):
    any_server.pieces = [answer(content)]
    assert refusal(lambda: ask(any_server))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 10**6,
        b'{"a":' * 10**6,
        b'{"choices": Infinity}',
        b"NaN",
        b"1" * 5000,
        b'{"a": "\xff"}',
        b"{",
    ],
)
def test_what_is_no_json_is_refused(serving, body):
    assert "no JSON" in refusal(lambda: ask(serving(response(body))))


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD, *[b"A: 0\r\n"] * 90],
        [HEAD + b"A: ", *[b"0"] * 90],
        [*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 90],
        [HEAD + b"Content-Length: 390\r\n\r\n", *[b" "] * 90],
        [HEAD + b"\r\n", *[b" "] * 90],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 90],
    ],
)
def test_an_answer_that_trickles_has_one_deadline(serving, pieces):
    server = serving(*pieces, answer(SOUND), pause_s=0.05)
    sampler = ChatSampler(Server(server.url, timeout_s=0.5), "m")
    assert "did not answer" in refusal(lambda: sampler.ask({"messages": []}))


@pytest.mark.parametrize(
    "head",
    [b"\r\n", b"Content-Length: 1000000000000\r\n\r\n", b"Content-Encoding: gzip\r\n\r\n"],
)
def test_an_answer_is_bounded_in_size(serving, head):
    blank = b" " * 2**20
    server = serving(HEAD + head, *[blank] * ((LARGEST >> 20) + 1))
    assert "more than 32 MiB" in refusal(lambda: ask(server))


def test_no_prompt_follows_a_redirect(serving):
    other = serving(answer(SOUND))
    location = f"Location: {other.url}/v1/chat/completions"
    for status in ("301 M", "302 F", "303 S", "307 T", "308 P"):
        line = refusal(lambda s=status: ask(serving(response(b"", s, location))))
        assert status[:3] in line
        assert other.url in line
    assert other.asked == []


def test_control_characters_of_a_message_are_escaped(serving):
    body = "no \x1b[31m\u202e model".encode()
    assert refusal(lambda: ask(serving(response(body, "400 Bad")))).isprintable()


def test_a_server_that_redirects_is_not_up(serving):
    other = serving(response(b"{}"))
    server = serving(response(b"", "307 T", f"Location: {other.url}/health"))
    client = Server(server.url, timeout_s=0.1)
    assert "away after 0.1 s (answers 307)" in refusal(client.wait)
    assert other.asked == []


@pytest.mark.parametrize("wait", ["9" * 5000, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_an_unbounded_wait_is_one_line(serving, wait):
    server = serving(response(b"", "429 Busy", f"Retry-After: {wait}"))
    assert "429" in refusal(lambda: ask(server))


@given(JSON, JSON, st.sampled_from(["stop", "length"]) | JSON)
def test_a_rollout_has_tokens_with_their_logps_or_is_refused(tokens, logps, finish):
    with suppress(EngineError):
        found = parse_completion(tokens, logps, finish)
        assert len(found.tokens) == len(found.logps) > 0
        assert all(type(token) is int and token >= 0 for token in found.tokens)
        assert all(type(logp) is float for logp in found.logps)


@pytest.mark.parametrize(
    ("tokens", "logps"),
    [([1], ["-1"]), (["1"], [-1.0]), ([-1], [-1.0]), ([1], [float("-inf")]), ([True], [-1.0])],
)
def test_a_rollout_of_other_types_is_refused(tokens, logps):
    assert "expected one for each" in refusal(lambda: parse_completion(tokens, logps, "stop"))


@given(JSON)
def test_a_rollout_server_tells_of_itself_or_is_refused(any_server, content):
    any_server.pieces = [answer(content)]
    assert refusal(lambda: VllmServer(any_server.url, timeout_s=10, group_port=0))


def test_runs_at_an_unknown_scale_is_refused():
    with pytest.raises(UnknownName, match="did you mean gpu"):
        runs(at="gpuu")
