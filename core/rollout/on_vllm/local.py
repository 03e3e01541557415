"""vLLM in the training process, on the same device."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils.other import get_free_port

from core.errors import EngineError
from core.rollout.engine import Sampled, Tokens
from core.rollout.on_vllm.engine import Request, Weights, completion

EXTERNAL = "external_launcher"  # what is spread over the processes that `accelerate` started


class VllmLocal:
    """One `vllm.LLM` for each process; `options` are further keywords of its constructor.

    `executor` is how vLLM starts what it spreads over several GPUs; by default processes of its
    own. With `sleeps` it gives its memory back between rollouts.

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
        self.params: Any = vllm.SamplingParams  # Any: vLLM is not here when types are checked
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
        self.rest()

    def complete(
        self, prompts: Sequence[Tokens], requests: Sequence[Request]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Backend.complete`."""
        found = self.llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            sampling_params=[
                self.params(**asked, detokenize="stop" in asked) for asked in requests
            ],
            use_tqdm=False,
        )
        for number, (output,) in enumerate(one.outputs for one in found):
            tokens = list(output.token_ids)
            rows = zip(output.logprobs or [], tokens, strict=False)
            logps = [known[token].logprob for known, token in rows]
            yield number, completion(tokens, logps, output.finish_reason)

    def load(self, weights: Weights) -> None:
        """See `Backend.load`; parameter by parameter, so that no second copy is held."""
        if self.sleeps:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.llm.wake_up(tags=["weights"])
        for pair in weights:
            self.llm.apply_model(lambda model, pair=pair: model.load_weights([pair]))
        if self.sleeps:
            self.llm.wake_up(tags=["kv_cache"])
        self.llm.reset_prefix_cache()

    def rest(self) -> bool:
        """See `Backend.rest`."""
        if self.sleeps:
            self.llm.sleep(level=2)
        return self.sleeps


def tell_launch() -> None:
    """Set what vLLM's external launcher reads, where `accelerate launch` has not."""
    processes = PartialState()
    for name, value in {
        "RANK": processes.process_index,
        "LOCAL_RANK": processes.local_process_index,
        "WORLD_SIZE": processes.num_processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": get_free_port(),
    }.items():
        os.environ.setdefault(name, str(value))
