"""Client of `vllm serve`: completions over HTTP, and weights over HTTP or NCCL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from operator import index, itemgetter
from typing import Any

from safetensors.torch import save

from core.errors import EngineError
from core.rollout.completions_server import Server
from core.rollout.engine import SampledCompletion, Tokens
from core.rollout.on_vllm.engine import Request, Weights, parse_completion

START = (
    "start one with `VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs "
    """--weight-transfer-config '{"backend": "nccl"}'`, then give the same command"""
)


class VllmServer(Server):
    """Client of a vLLM server, whose model and capabilities are read at construction.

    Every completion is a request with its own seed.

    Args:
        url: address of the server.
        timeout_s: seconds to wait for the server to start, and for each answer.
        group_port: port of the process group that broadcasts weights over NCCL.

    Raises:
        EngineError: the server is away, too slow or dies, refuses a request, or was started
            without weight transfer or processed log-probabilities.
    """

    name = "vLLM server"
    away = START
    broken = "start it again; the same command continues from the last checkpoint"
    slow = (
        "see its log, or raise vllm_server_timeout; the same command continues from the last "
        "checkpoint"
    )
    shared = True

    def __init__(self, url: str, *, timeout_s: float, group_port: int):
        super().__init__(url, timeout_s=timeout_s)
        self.group_port = group_port
        self.group: Any = None  # Any: vLLM's communicator, once weights go over NCCL
        self.wait()
        with self.reading("/v1/models or /server_info", "what `vllm serve` tells of itself"):
            self.model = str(self.call("GET", "/v1/models")["data"][0]["id"])
            server_info = self.call("GET", "/server_info", params={"config_format": "json"})
            config = server_info["vllm_config"]
            self.dtype = str(config["model_config"]["dtype"])
            self.transfer = self.transport(config)

    def transport(self, config: Mapping[str, Any]) -> Callable[["VllmServer", Weights], None]:
        """Return the function that sends weights to a server with this configuration.

        Raises:
            EngineError: the configuration lacks weight transfer or processed log-probabilities.
        """
        mode = config["model_config"]["logprobs_mode"]
        if mode != "processed_logprobs":
            raise EngineError(
                f"{self} reports {mode}, not the log-probabilities that it samples from: {START}"
            )
        name = str((config["weight_transfer_config"] or {}).get("backend"))
        if name not in TRANSPORTS:
            raise EngineError(
                f"{self} takes weights by {name}: expected {' or '.join(TRANSPORTS)}; {START}"
            )
        if name == "nccl" and find_spec("vllm") is None:
            raise EngineError(
                f"{self} takes weights over NCCL, for which vllm is needed here too: install it "
                "beside a GPU"
            )
        return TRANSPORTS[name]

    def complete(
        self, prompts: Sequence[Tokens], requests: Sequence[Request]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Backend.complete`."""
        return self.map_unordered(
            lambda pair: self.complete_one(*pair), list(zip(prompts, requests, strict=True))
        )

    def complete_one(self, prompt: Tokens, request: Request) -> SampledCompletion:
        """Return the completion of one prompt."""
        ids = {"return_token_ids": True, "return_tokens_as_token_ids": True}
        body = {"model": self.model, "prompt": list(prompt), **request, **ids}
        content = self.call("POST", "/v1/completions", json=body)
        with self.reading("/v1/completions", "token_ids and token_logprobs of one choice"):
            (choice,) = content["choices"]
            logps = (choice.get("logprobs") or {}).get("token_logprobs")
            return parse_completion(choice.get("token_ids"), logps, choice.get("finish_reason"))

    def load(self, weights: Weights) -> None:
        """See `Backend.load`. The server's prefix cache is reset."""
        self.call("POST", "/start_weight_update", json={})
        self.transfer(self, weights)
        self.call("POST", "/finish_weight_update", json={})
        self.call("POST", "/reset_prefix_cache")

    def release_memory(self) -> bool:
        """See `Backend.release_memory`. The server has its own device, so nothing is released."""
        return False


def send_over_http(server: VllmServer, weights: Weights) -> None:
    """Send the weights as a safetensors file, for servers without a GPU."""
    body = save({name: tensor.contiguous() for name, tensor in weights})
    server.call("POST", "/update_weights", data=body)


def broadcast_over_nccl(server: VllmServer, weights: Weights) -> None:
    """Broadcast the weights over NCCL, from rank 0 of a group with the server's workers.

    Needs vLLM 0.28 or later.
    """
    from vllm.distributed.weight_transfer.packed_tensor import (  # pyright: ignore[reportMissingImports]
        packed_nccl_broadcast_producer,
    )

    server.group = server.group or join_group(server)
    named_weights = list(weights)
    info = {
        "names": [name for name, _ in named_weights],
        "dtype_names": [str(tensor.dtype).removeprefix("torch.") for _, tensor in named_weights],
        "shapes": [list(tensor.shape) for _, tensor in named_weights],
    }
    with ThreadPoolExecutor(1) as pool:  # the server answers when it has received all
        answer = pool.submit(server.call, "POST", "/update_weights", json={"update_info": info})
        packed_nccl_broadcast_producer(
            iterator=iter(named_weights), group=server.group, src=0, post_iter_func=itemgetter(1)
        )
        answer.result()


def join_group(server: VllmServer) -> Any:  # Any: vLLM's communicator
    """Create a process group of this process and the server's workers."""
    from vllm.distributed.weight_transfer.nccl_common import (  # pyright: ignore[reportMissingImports]
        trainer_init,
    )
    from vllm.utils.network_utils import get_ip  # pyright: ignore[reportMissingImports]

    info = {
        "master_address": get_ip(),
        "master_port": server.group_port,
        "rank_offset": 1,
        "world_size": 1 + world_size(server),
        "packed": True,
    }
    with ThreadPoolExecutor(1) as pool:  # the server answers when this side has joined too
        path = "/init_weight_transfer_engine"
        answer = pool.submit(server.call, "POST", path, json={"init_info": info})
        group = trainer_init(info)
        answer.result()
    return group


def world_size(server: VllmServer) -> int:
    """Return the number of the server's workers."""
    content = server.call("GET", "/get_world_size")
    with server.reading("/get_world_size", "world_size, an integer"):
        return index(content["world_size"])


TRANSPORTS: Mapping[str, Callable[[VllmServer, Weights], None]] = {
    "nccl": broadcast_over_nccl,
    "http": send_over_http,
}
