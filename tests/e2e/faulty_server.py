"""A server with OpenAI's interface that answers at once, or goes wrong in the ways of real ones."""

import json
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FaultyServer(ThreadingHTTPServer):
    """The first requests meet the `faults`, one each; `asked` holds every request with its time.

    A fault is a status with headers, or one of `drop` (no word), `cut` (half a body), `garbled` (no
    JSON), `slow` (no answer before the end), `stop` (this request and all later ones are dropped).
    """

    request_queue_size = 256  # connections that come at once
    daemon_threads = True

    def __init__(self, faults=(), port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.faults = list(faults)
        self.asked = []
        self.lock = threading.Lock()
        self.over = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def next_fault(self, path, headers, body):
        with self.lock:
            self.asked.append((time.monotonic(), path, headers, body))
            if not self.faults:
                return None
            return self.faults[0] if self.faults[0] == "stop" else self.faults.pop(0)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b"up")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self.server.next_fault(self.path, dict(self.headers), body)
        if fault in ("drop", "stop"):
            return
        if fault == "slow":
            self.server.over.wait()
            return
        if isinstance(fault, tuple):
            status, headers = fault
            said = {"error": f"no: {self.headers.get('Authorization')}"}
            self.answer(json.dumps(said).encode(), status, headers)
            return
        content = json.dumps(answer_to(self.path, body)).encode()
        if fault == "garbled":
            content = content[: len(content) // 2]
        self.answer(content, cut=fault == "cut")

    def answer(self, content, status=200, headers=None, cut=False):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *_):
        pass


def answer_to(path, body):
    """What is answered depends on the prompt and the seed alone."""
    prompt = body["prompt"] if path == "/v1/completions" else body["messages"][0]["content"]
    text = f"{prompt[-9:]}|{body['seed'] % 1000}"
    choice = {"text": text} if path == "/v1/completions" else {"message": {"content": text}}
    return {
        "choices": [{**choice, "finish_reason": "stop"}],
        "usage": {"completion_tokens": len(text)},
    }


@contextmanager
def faulty_server(*faults):
    """A server in a thread of its own while the block runs."""
    server = FaultyServer(faults)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":  # serve PORT
    FaultyServer(port=int(sys.argv[2])).serve_forever()
