"""The colocated engine against a stand-in for `vllm`, which needs a GPU.

The stand-in has the parts of its interface that are used, with the documented signatures.
"""

import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pytest
import torch
from grpo_runs import logs, weights
from transformers import AutoModelForCausalLM

from core.errors import EngineError
from core.rollout.engine import Sampling, in_order
from core.rollout.native.native import NativeEngine
from eval.errors import BadValue


@dataclass(kw_only=True)
class SamplingParams:
    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    seed: int
    logprobs: int
    ignore_eos: bool
    stop_token_ids: list[int]
    detokenize: bool


class LLM:
    """Generates with our native engine, and forgets its weights in a sleep of level 2."""

    def __init__(
        self,
        model,
        *,
        tensor_parallel_size,
        gpu_memory_utilization,
        max_model_len,
        max_num_batched_tokens,
        enable_sleep_mode,
        model_impl,
        distributed_executor_backend,
        logprobs_mode,
        trust_remote_code,
    ):
        assert (tensor_parallel_size, model_impl, trust_remote_code) == (1, "vllm", False)
        assert (distributed_executor_backend, logprobs_mode) == (
            "external_launcher",
            "processed_logprobs",
        )
        assert 0 < gpu_memory_utilization < 1
        assert max_model_len is None
        assert max_num_batched_tokens > 0
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()
        self.model.load_weights = self.load_weights
        config = SimpleNamespace(model_config=SimpleNamespace(dtype=torch.float32))
        self.llm_engine = SimpleNamespace(vllm_config=config)
        self.may_sleep, self.awake, self.loads = enable_sleep_mode, {"weights", "kv_cache"}, 0

    def generate(self, prompts, sampling_params, use_tqdm):
        assert not use_tqdm
        assert self.awake == {"weights", "kv_cache"}
        return [self.one(p["prompt_token_ids"], s) for p, s in zip(prompts, sampling_params)]  # noqa: B905

    def one(self, prompt, params):
        sampling = Sampling(
            max_tokens=params.max_tokens,
            ends=frozenset(params.stop_token_ids),
            temperature=params.temperature,
            top_k=params.top_k,
        )
        (row,) = in_order(NativeEngine(self.model).sample([prompt], sampling, [params.seed]), 1)
        known = [
            {token: SimpleNamespace(logprob=logp)}
            for token, logp in zip(row.tokens, row.logps, strict=True)
        ]
        output = SimpleNamespace(
            token_ids=tuple(row.tokens), logprobs=known, finish_reason=row.finish
        )
        return SimpleNamespace(outputs=[output])

    def apply_model(self, call):
        return [call(self.model)]

    def load_weights(self, pairs):
        assert "weights" in self.awake
        self.loads += 1
        for name, tensor in pairs:
            self.model.get_parameter(name).data.copy_(tensor)

    def reset_prefix_cache(self):
        assert "kv_cache" in self.awake

    def wake_up(self, tags):
        self.awake |= set(tags)

    def sleep(self, level):
        assert self.may_sleep
        assert level == 2
        self.awake = set()
        for parameter in self.model.parameters():
            parameter.data.fill_(torch.nan)


@pytest.fixture
def served(build_llama, tmp_path):
    """A model to train whose folder holds other weights, as after a step of training."""
    build_llama(seed=9).save_pretrained(tmp_path / "model")
    model = build_llama()
    model.config._name_or_path = str(tmp_path / "model")
    return model


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_run_with_the_engine_in_the_process_is_that_of_the_native_engine(
    sleeps, make_grpo, served, monkeypatch, tmp_path
):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # what the engine sets is gone after the test
        monkeypatch.delenv(name)
    near = make_grpo(output_dir=str(tmp_path / "near"))
    near.train()
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    options = {"use_vllm": True, "vllm_importance_sampling_correction": False}
    far = make_grpo(model=served, vllm_enable_sleep_mode=sleeps, **options)
    far.train()
    assert torch.equal(weights(near.model), weights(far.model))
    assert logs(near, "reward") == logs(far, "reward")
    assert far.vllm.backend.llm.loads == 2 * len(list(served.named_parameters()))
    assert far.vllm.backend.llm.awake == (set() if sleeps else {"weights", "kv_cache"})


def test_a_missing_vllm_is_one_clear_line(make_grpo):
    with pytest.raises(EngineError, match="needs vLLM in this environment") as error:
        make_grpo(use_vllm=True)
    assert "\n" not in str(error.value)
    assert "vllm_mode='server'" in str(error.value)


def test_a_rollout_function_that_is_corrected_must_return_its_log_probabilities(make_grpo):
    def silent(rows, trainer):  # noqa: ARG001 - the caller's signature
        return {"prompt_ids": [[5]] * 4, "completion_ids": [[6, 1]] * 4, "logprobs": None}

    trainer = make_grpo(rollout=silent, use_vllm=True, gradient_accumulation_steps=1, max_steps=1)
    with pytest.raises(BadValue, match="rollout_func returned logprobs=None: return those"):
        trainer.train()
