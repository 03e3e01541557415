"""Backend that runs vLLM in the training process, on the same device."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils.other import get_free_port

from core.errors import EngineError
from core.rollout.engine import SampledCompletion, Tokens
from core.rollout.on_vllm.engine import Request, Weights, parse_completion

EXTERNAL = "external_launcher"  # vLLM's executor over the processes that `accelerate` started


class VllmLocal:
    """Backend with a `vllm.LLM` in each process.

    Args:
        model: folder of the model, or its name on the hub.
        sleeps: whether vLLM releases its memory between rollouts.
        executor: how vLLM starts its workers on several GPUs; by default as processes of its
            own.
        options: further keyword arguments of `vllm.LLM`.

    Raises:
        EngineError: vLLM is not installed.
    """

    shared = False

    def __init__(
        self, model: str, *, sleeps: bool = False, executor: str | None = None, **options: Any
    ):
        try:
            import vllm  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise EngineError(
                f"vllm_mode='colocate' and --engine vllm need vLLM in this environment ({error}): "
                "install it, or use a server, or our own engine (use_vllm=False, --engine native)"
            ) from None
        self.params: Any = vllm.SamplingParams  # Any: vLLM is not installed for type checks
        if executor == EXTERNAL:
            tell_launch()
        self.llm: Any = vllm.LLM(
            model=model,
            enable_sleep_mode=sleeps,
            distributed_executor_backend=executor,
            logprobs_mode="processed_logprobs",
            max_num_batched_tokens=4096,  # its memory estimate goes by this
            **options,
        )
        self.dtype = str(self.llm.llm_engine.vllm_config.model_config.dtype)
        self.sleeps = sleeps
        self.release_memory()

    def complete(
        self, prompts: Sequence[Tokens], requests: Sequence[Request]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Backend.complete`."""
        generated = self.llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            sampling_params=[
                self.params(**request, detokenize="stop" in request) for request in requests
            ],
            use_tqdm=False,
        )
        for index, (output,) in enumerate(group.outputs for group in generated):
            tokens = list(output.token_ids)
            rows = zip(output.logprobs or [], tokens, strict=False)
            logps = [step_logps[token].logprob for step_logps, token in rows]
            yield index, parse_completion(tokens, logps, output.finish_reason)

    def load(self, weights: Weights) -> None:
        """See `Backend.load`. Parameters are loaded one by one, so no second copy exists."""
        if self.sleeps:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.llm.wake_up(tags=["weights"])
        for pair in weights:
            self.llm.apply_model(lambda model, pair=pair: model.load_weights([pair]))
        if self.sleeps:
            self.llm.wake_up(tags=["kv_cache"])
        self.llm.reset_prefix_cache()

    def release_memory(self) -> bool:
        """See `Backend.release_memory`."""
        if self.sleeps:
            self.llm.sleep(level=2)
        return self.sleeps


def tell_launch() -> None:
    """Set the environment variables of vLLM's external launcher that are not set yet."""
    processes = PartialState()
    for name, value in {
        "RANK": processes.process_index,
        "LOCAL_RANK": processes.local_process_index,
        "WORLD_SIZE": processes.num_processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": get_free_port(),
    }.items():
        os.environ.setdefault(name, str(value))
