"""Answers of a model that vLLM has loaded in this process."""

from typing import Any

from transformers import AutoConfig, GenerationConfig

from core.rollout.engine import in_order
from core.rollout.on_vllm.engine import request
from core.rollout.on_vllm.local import VllmLocal
from core.rollout.samplers.policy import DEVICE_CHUNK, LocalSampler
from core.rollout.stops import declared_ends
from eval.samples.evaluation import Decoding


class VllmSampler(LocalSampler):
    """Samples with vLLM, each layer spread over `tensor_parallel` GPUs.

    `rows` answers are decoded at a time; None are as many as vLLM decides.
    `place` is a folder with a whole model, or its name on the hub.

    Prompts, seeds and what ends an answer are those of `PolicySampler`; the numbers that are drawn
    are vLLM's own.

    Raises:
        EngineError: vLLM is not installed.
    """

    # Any: a PreTrainedTokenizerBase, whose types are unions
    def __init__(
        self, place: str, tokenizer: Any, *, dtype: str, tensor_parallel: int, rows: int | None
    ):
        super().__init__(tokenizer, chunk=DEVICE_CHUNK)
        self.ends = frozenset(declared_ends(generation_of(place), self.tokenizer))
        most: dict[str, Any] = {} if rows is None else {"max_num_seqs": rows}
        self.backend = VllmLocal(place, dtype=dtype, tensor_parallel_size=tensor_parallel, **most)

    def draw(
        self, prompts: list[list[int]], decoding: Decoding, seeds: list[int]
    ) -> list[list[int]]:
        """See `ChunkedSampler.draw`; vLLM looks for the stop strings in its own text."""
        sampling = self.sampling(decoding)
        stop = [string for string in decoding.stop if string]
        stops = {"stop": stop, "include_stop_str_in_output": True} if stop else {}
        requests = [{**request(sampling, seed), **stops} for seed in seeds]
        found = self.counted(self.backend.complete(prompts, requests))
        return [row.tokens for row in in_order(found, len(prompts))]


def generation_of(place: str) -> GenerationConfig:
    """How a model says that it generates: its own file, else its configuration."""
    try:
        return GenerationConfig.from_pretrained(place)
    except OSError:
        return GenerationConfig.from_model_config(
            AutoConfig.from_pretrained(place, trust_remote_code=False)
        )
