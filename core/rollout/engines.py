"""Rollout engines by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from transformers import PreTrainedModel

from core.configs.engines import VLLM_MODES
from core.configs.rollout import RolloutConfig
from core.rollout.engine import Engine
from core.rollout.hf.loops import EqualEngine, HfEngine, PagedEngine
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.native.native import NativeEngine
from core.rollout.on_vllm.engine import VllmEngine
from core.rollout.on_vllm.local import EXTERNAL, VllmLocal
from core.rollout.on_vllm.server import VllmServer

MAKERS: Mapping[str, Callable[[PreTrainedModel, int], Engine]] = {
    "native": lambda model, _: NativeEngine(model, rows=None),
    "equal": EqualEngine,
    "hf": HfEngine,
    "hf-cb": PagedEngine,
}


def make_engine(
    name: str,
    model: PreTrainedModel,
    pad_token_id: int,
    batching: Mapping[str, object] | None = None,
) -> Engine:
    """Return the engine of this name for a model that is in evaluation mode.

    Args:
        name: a key of `MAKERS`.
        model: the model, also with adapters.
        pad_token_id: token that pads.
        batching: settings of continuous batching, see `PagedEngine`.
    """
    engine = MAKERS[name](unwrap_peft(model), pad_token_id)
    return replace(engine, batching=batching or {}) if isinstance(engine, PagedEngine) else engine


def vllm_engine(name_or_path: str, args: RolloutConfig) -> VllmEngine:
    """Connect to the vLLM server, or load the model into vLLM in this process, as `args` say."""
    if VLLM_MODES[args.vllm_mode].is_server:
        url = f"http://{args.vllm_server_host}:{args.vllm_server_port}"
        server = VllmServer(
            args.vllm_server_base_url or url,
            timeout_s=args.vllm_server_timeout,
            group_port=args.vllm_group_port,
        )
        return VllmEngine(server)
    local = VllmLocal(
        name_or_path,
        sleeps=args.vllm_enable_sleep_mode,
        executor=EXTERNAL,
        tensor_parallel_size=args.vllm_tensor_parallel_size,
        gpu_memory_utilization=args.vllm_gpu_memory_utilization,
        max_model_len=args.vllm_max_model_length,
        model_impl=args.vllm_model_impl,
        trust_remote_code=args.trust_remote_code,
    )
    return VllmEngine(local)
