"""Sampler with a model that vLLM has loaded in this process."""

from typing import Any

from transformers import AutoConfig, GenerationConfig, PreTrainedTokenizerBase

from core.rollout.engine import in_order
from core.rollout.on_vllm.engine import vllm_request
from core.rollout.on_vllm.local import VllmLocal
from core.rollout.stops import declared_ends
from core.samplers.policy import DEVICE_CHUNK, LocalSampler
from eval.samples.evaluation import Decoding


class VllmSampler(LocalSampler):
    """Sampler that uses vLLM, each layer spread over `tensor_parallel` GPUs.

    Prompts, seeds and end tokens are those of `PolicySampler`; the random numbers are vLLM's.

    Args:
        place: folder with a whole model, or its name on the hub.
        tokenizer: the model's tokenizer.
        dtype: name of the dtype of the weights.
        tensor_parallel: number of GPUs.
        rows: number of answers decoded at a time; None leaves it to vLLM.

    Raises:
        EngineError: vLLM is not installed.
    """

    def __init__(
        self,
        place: str,
        tokenizer: PreTrainedTokenizerBase,
        *,
        dtype: str,
        tensor_parallel: int,
        rows: int | None,
    ):
        super().__init__(tokenizer, chunk=DEVICE_CHUNK)
        self.ends = frozenset(declared_ends(generation_of(place), self.tokenizer))
        limits: dict[str, Any] = {} if rows is None else {"max_num_seqs": rows}  # Any: vLLM options
        self.backend = VllmLocal(place, dtype=dtype, tensor_parallel_size=tensor_parallel, **limits)

    def draw(
        self, prompts: list[list[int]], decoding: Decoding, seeds: list[int]
    ) -> list[list[int]]:
        """See `ChunkedSampler.draw`. vLLM searches its own text for the stop strings."""
        sampling = self.sampling(decoding)
        stop = [string for string in decoding.stop if string]
        stops = {"stop": stop, "include_stop_str_in_output": True} if stop else {}
        requests = [{**vllm_request(sampling, seed), **stops} for seed in seeds]
        completions = self.report_progress(self.backend.complete(prompts, requests))
        return [row.tokens for row in in_order(completions, len(prompts))]


def generation_of(place: str) -> GenerationConfig:
    """Return a model's generation config, from its own file or else from its model config."""
    try:
        return GenerationConfig.from_pretrained(place)
    except OSError:
        return GenerationConfig.from_model_config(
            AutoConfig.from_pretrained(place, trust_remote_code=False)
        )
