"""A server with the HTTP interface of `vllm serve` that the tests need, over our native engine.

As a program it reads one JSON line of options for each server to start, and prints its address and
process. Every server is a process of its own; the faults among the options are those of real ones.
"""

import json
import os
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from safetensors.torch import load
from transformers import AutoModelForCausalLM

from core.rollout.engine import Sampling, in_order
from core.rollout.native.native import NativeEngine


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to serve, and what goes wrong."""

    model: str
    backend: str | None = "http"
    logprobs_mode: str = "processed_logprobs"
    updates: int = 10**9  # that are taken over; the later ones are only acknowledged
    dies_after: int = 10**9  # completions
    forgets_after: int = 10**9  # completions; then the weights are those of the start again
    stalls_after: int = 10**9  # completions
    plain: bool = False  # answers as OpenAI's interface has it, without token ids
    aborts: bool = False  # breaks completions off
    nan: bool = False  # knows no log-probability of the first token


class Serving:
    """The model and what has been asked so far."""

    def __init__(self, options: Options):
        self.options = options
        self.load()
        self.lock = threading.Lock()
        self.calls: list[str] = []

    def load(self):
        self.model = AutoModelForCausalLM.from_pretrained(self.options.model).eval()
        self.engine = NativeEngine(self.model)

    def get(self, path):
        options = self.options
        config = {"dtype": "torch.float32", "logprobs_mode": options.logprobs_mode}
        transfer = options.backend and {"backend": options.backend}
        return {
            "/health": {},
            "/v1/models": {"data": [{"id": options.model}]},
            "/server_info": {
                "vllm_config": {"model_config": config, "weight_transfer_config": transfer}
            },
            "/get_world_size": {"world_size": 1},
            "/calls": self.calls,
        }[path]

    def post(self, path, body):
        with self.lock:
            self.calls.append(path)
            if path == "/v1/completions":
                return self.complete(json.loads(body))
            if path == "/update_weights" and self.calls.count(path) <= self.options.updates:
                found = self.model.load_state_dict(load(body), strict=False)
                assert not found.unexpected_keys
                self.model.tie_weights()
                self.engine = NativeEngine(self.model)
            return {}

    def complete(self, asked):
        done = self.calls.count("/v1/completions")
        if done > self.options.dies_after:
            os._exit(9)
        if done == self.options.forgets_after:
            self.load()
        if done > self.options.stalls_after:
            threading.Event().wait()
        if asked["top_k"] < -1:
            return None
        sampling = Sampling(
            max_tokens=asked["max_tokens"],
            ends=frozenset(asked["stop_token_ids"]),
            temperature=asked["temperature"],
            top_k=asked["top_k"],
            top_p=asked["top_p"],
            min_p=asked["min_p"] or None,
            repetition_penalty=asked["repetition_penalty"],
        )
        (row,) = in_order(self.engine.sample([asked["prompt"]], sampling, [asked["seed"]]), 1)
        if self.options.plain:
            return {"choices": [{"text": "...", "finish_reason": row.finish, "logprobs": None}]}
        logps = [None, *row.logps[1:]] if self.options.nan else row.logps
        finish = "abort" if self.options.aborts else row.finish
        choice = {"token_ids": row.tokens, "logprobs": {"token_logprobs": logps}}
        return {"choices": [choice | {"finish_reason": finish}]}


def handler(serving):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(serving.get(self.path.partition("?")[0]))

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(serving.post(self.path, body))

        def answer(self, found):
            status = 400 if found is None else 200
            body = json.dumps({"error": "top_k must be -1 or more"} if found is None else found)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    return Handler


class Server(ThreadingHTTPServer):
    request_queue_size = 256  # connections that come at once


def serve(options, out):
    server = Server(("127.0.0.1", 0), handler(Serving(options)))
    print(json.dumps([f"http://127.0.0.1:{server.server_port}", os.getpid()]), file=out, flush=True)
    server.serve_forever()


def main():
    torch.set_num_threads(1)
    for line in sys.stdin:
        if os.fork() == 0:
            sys.stdin.close()
            serve(Options(**json.loads(line)), sys.stdout)


if __name__ == "__main__":
    main()
