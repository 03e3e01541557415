"""A small server that takes models as the Hugging Face hub does."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Hub(BaseHTTPRequestHandler):
    """The few requests with which a folder of small files is uploaded."""

    def do_GET(self):
        known = "hf_of_a_test" in self.headers.get("Authorization", "")
        self.answer(
            {"name": "me", "type": "user"} if known else {"error": "who?"}, 200 if known else 401
        )

    def do_POST(self):
        size = int(self.headers.get("Content-Length", 0))
        chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
        body = b"".join(self.chunks()) if chunked else self.rfile.read(size)
        server, path = self.server, self.path.partition("?")[0]
        if path.endswith("/commit/main"):
            server.commits.append([json.loads(line) for line in body.splitlines()])
            if "progress" in server.commits[-1][0]["value"]["summary"]:  # of a checkpoint
                return self.answer({"error": "the disk of the hub is full"}, 507)
        url = f"http://127.0.0.1:{server.server_address[1]}/me/named"
        if path.endswith("/preupload/main"):
            files = [file["path"] for file in json.loads(body)["files"]]
            return self.answer(
                {
                    "files": [
                        {"path": f, "uploadMode": "regular", "shouldIgnore": False} for f in files
                    ]
                }
            )
        return self.answer({"url": url, "commitUrl": f"{url}/commit/1", "commitOid": "1"})

    def chunks(self):
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, content, status=200):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Stay quiet."""


@contextmanager
def serving():
    """The server, which keeps the commits that it takes, and the environment that finds it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.commits = []
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield (
            server,
            {
                "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
                "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_OFFLINE": "0",
                "NO_PROXY": "127.0.0.1",
            },
        )
    finally:
        server.shutdown()
        server.server_close()
