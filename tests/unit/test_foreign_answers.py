"""Answers of a server that are not what OpenAI's interface gives are refused in one line."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from core.cli.finding import runs
from core.errors import EngineError
from core.rollout.completions_server import Server
from core.rollout.samplers.served import ChatSampler
from eval.errors import UnknownName


@pytest.fixture
def serving():
    """Start servers that give every request one answer; `asked` holds the paths."""
    servers = []

    def start(status, body=b"", **headers):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.server.asked.append(self.path)
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked = []
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server, f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(url):
    return ChatSampler(Server(url, timeout_s=10), "m").ask({"messages": []})


@pytest.mark.parametrize(
    ("text", "count"),
    [(7, 1), ({}, 1), ([], 1), (0, 1), ("a", -1), ("a", True), ("a", 1.5), ("a", float("inf"))],
)
def test_text_is_a_string_and_a_count_is_not_negative(serving, text, count):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    body = {"choices": [choice], "usage": {"completion_tokens": count}}
    _, url = serving(200, json.dumps(body).encode())
    with pytest.raises(EngineError, match="expected choices and usage"):
        ask(url)


def test_no_prompt_follows_a_redirect(serving):
    other, elsewhere = serving(200, b"{}")
    _, url = serving(307, Location=elsewhere + "/v1/chat/completions")
    with pytest.raises(EngineError, match="307"):
        ask(url)
    assert other.asked == []


def test_control_characters_of_a_message_are_escaped(serving):
    _, url = serving(400, "no \x1b[31m\u202e model".encode())
    with pytest.raises(EngineError) as caught:
        ask(url)
    assert str(caught.value).isprintable()


def test_runs_at_an_unknown_scale_is_refused():
    with pytest.raises(UnknownName, match="did you mean gpu"):
        runs(at="gpuu")
