"""vLLM in this process, training and evaluating, against a stand-in for it, as it needs a GPU.

The stand-in has the parts of its interface that are used, with the documented signatures.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from grpo_runs import logs, weights
from transformers import AutoModelForCausalLM, AutoTokenizer

from core.errors import EngineError
from core.models.load import load_policy
from core.rollout.engine import Sampling, in_order
from core.rollout.native.native import NativeEngine
from core.rollout.stops import stop_function
from core.run.order import run_order
from core.run.request import Order
from core.stages.loading import Loading
from eval.errors import BadValue, UnknownName
from eval.samples.evaluation import Decoding
from papers.deepseekmath_grpo import PAPER


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
    stop: list[str] | None = None
    include_stop_str_in_output: bool = False

    def __post_init__(self):
        assert self.detokenize == self.include_stop_str_in_output == bool(self.stop)


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
            top_p=params.top_p,
            stop=stop_function(self.tokenizer, params.stop) if params.stop else None,
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


class Evaluated(LLM):
    """As it is made for an evaluation: it spreads over GPUs by itself, and keeps its weights."""

    def __init__(self, model, *, dtype, tensor_parallel_size, max_num_seqs=None, **options):
        trained = {"enable_sleep_mode", "distributed_executor_backend"}
        assert {name: options[name] for name in trained} == dict.fromkeys(trained) | {
            "enable_sleep_mode": False
        }
        self.made = (dtype, tensor_parallel_size, max_num_seqs)
        self.model = load_policy(model, dtype).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(model)
        self.awake = {"weights", "kv_cache"}
        config = SimpleNamespace(model_config=SimpleNamespace(dtype=self.model.dtype))
        self.llm_engine = SimpleNamespace(vllm_config=config)


@pytest.fixture
def evaluated(monkeypatch):
    """An environment in which vLLM is installed; every engine that was made in it."""
    made = []
    module = ModuleType("vllm")
    module.LLM = lambda *args, **options: made.append(Evaluated(*args, **options)) or made[-1]
    module.SamplingParams = SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    return made


@pytest.fixture
def folder(build_llama, tiny_tokenizer, tmp_path):
    """A model that declares an end beside its tokenizer's."""
    model = build_llama(seed=4)
    model.generation_config.eos_token_id = [tiny_tokenizer.eos_token_id, 9]
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(max_tokens=9),
        Decoding(max_tokens=9, samples=3, temperature=1.0, seed=5),
        Decoding(max_tokens=9, samples=2, temperature=0.8, top_p=0.7, top_k=20, system="be brief"),
        Decoding(max_tokens=30, samples=4, temperature=1.0, stop=("a", "7"), chat=False),
    ],
    ids=("greedy", "drawn", "narrowed", "stopped"),
)
def test_it_is_asked_what_our_engine_is_asked(decoding, folder, evaluated):
    asked = ["1+1", "a long prompt", "2"]
    here = Loading().answerer(folder)(asked, decoding)
    loading = Loading(engine="vllm", dtype="float32", tensor_parallel=2, batch_size=7)
    assert loading.answerer(folder)(asked, decoding) == here
    assert [one.made for one in evaluated] == [("float32", 2, 7)]
    every = [one for row in here for one in row]
    assert any(one.stopped for one in every) == bool(decoding.stop)


def test_a_run_is_scored_with_it_and_says_so(folder, evaluated, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    short = ("max_steps=1", "eval_limit=2", "eval_max_tokens=9", "heldout_problems=0")
    batch = ("per_device_train_batch_size=4", "num_generations=4", "gradient_accumulation_steps=1")
    order = Order(paper=PAPER, arguments=(f"model={folder}", *short, "at_k_samples=4", *batch))
    scored = ("eval_engine=vllm", "eval_tensor_parallel=2")
    (plain,) = run_order(order).runs
    assert not evaluated
    (found,) = run_order(replace(order, arguments=(*order.arguments, *scored))).runs
    assert found["train"] == plain["train"]  # the same training, not trained anew
    assert {row["computed"] for row in found["scores"]} == {"float32 on cpu by vLLM"}
    assert not any("computed" in row for row in plain["scores"])
    assert {one.made[1] for one in evaluated} == {2}
    for one, other in zip(found["scores"], plain["scores"], strict=True):
        assert one["value"] == other["value"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "vlm"}, "no engine 'vlm'"),
        ({"tensor_parallel": 2}, "tensor_parallel=2 is for vLLM in this process"),
        ({"tensor_parallel": 0, "engine": "vllm"}, "tensor_parallel=0: expected at least 1"),
        ({"device": "cpu", "engine": "vllm"}, "device=cpu: vLLM takes the GPUs that it sees"),
    ],
)
def test_what_it_would_not_look_at_is_refused(settings, message):
    with pytest.raises((BadValue, UnknownName), match=message):
        Loading(**settings)


def test_adapters_are_refused_before_anything_loads(folder, evaluated):
    (Path(folder) / "adapter_config.json").write_text("{}")
    with pytest.raises(BadValue, match=r"the engine vllm does not add.*merge them"):
        Loading(engine="vllm").answerer(folder)
    assert not evaluated


def test_without_it_an_evaluation_ends_with_one_clear_line(folder):
    with pytest.raises(EngineError, match="--engine vllm need vLLM in this environment"):
        Loading(engine="vllm").answerer(folder)


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
    with pytest.raises(EngineError, match="need vLLM in this environment") as error:
        make_grpo(use_vllm=True)
    assert "\n" not in str(error.value)
    assert "use a server, or our own engine (use_vllm=False" in str(error.value)


def test_a_rollout_function_that_is_corrected_must_return_its_log_probabilities(make_grpo):
    def silent(rows, trainer):  # noqa: ARG001 - the caller's signature
        return {"prompt_ids": [[5]] * 4, "completion_ids": [[6, 1]] * 4, "logprobs": None}

    trainer = make_grpo(rollout=silent, use_vllm=True, gradient_accumulation_steps=1, max_steps=1)
    with pytest.raises(BadValue, match="rollout_func returned logprobs=None: return those"):
        trainer.train()
