"""Models are loaded to answer in the precision and on the device that were asked for."""

import pytest
import torch

from core.evaluate.model_scores import load_sampler
from core.lm_eval.model import ReproLM
from core.models.load import load_policy
from core.run.plan import make_plan
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.loading import Loading, loading_of
from eval.errors import BadValue, UnknownName
from papers.deepseekmath_grpo import PAPER


@pytest.fixture
def folder(tmp_path, build_llama, tiny_tokenizer):
    """A model whose files are in bfloat16."""
    build_llama().to(torch.bfloat16).save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def test_the_weights_have_the_precision_that_is_asked_for(folder):
    found = {
        name: load_sampler(folder, loading=Loading(dtype=name)).model.dtype
        for name in ("auto", "bfloat16", "float16", "float32")
    }
    assert found == {
        "auto": torch.bfloat16,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float32": torch.float32,
    }
    assert load_sampler(folder).model.dtype == torch.float32
    assert ReproLM(folder, dtype="auto").model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "bf16"}, "no dtype 'bf16'"),
        ({"device": "gpu"}, "device=gpu: .*expected cpu, or cuda:N"),
        ({"device": "meta"}, "device=meta: expected cpu, cuda or cuda:N"),
        ({"device": "cuda:99"}, "device=cuda:99: .*expected cpu, or cuda:N"),
        ({"batch_size": 0}, "batch_size=0: expected at least 1"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_loads(settings, message):
    with pytest.raises((BadValue, UnknownName), match=message) as caught:
        Loading(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("scale", "arguments", "dtype"),
    [
        ("cpu", (), "float32"),
        ("cpu", ("bf16=true",), "bfloat16"),
        ("cpu", ("fp16=true",), "float16"),
        ("gpu", (), "bfloat16"),
        ("gpu", ("bf16=false",), "float32"),
        ("gpu", ("fp16=true",), "float16"),
        ("paper", (), "bfloat16"),
    ],
)
def test_a_run_is_scored_in_the_precision_that_it_trains_with(scale, arguments, dtype):
    resolved = resolve(PAPER, scale=scale, arguments=arguments)
    assert loading_of(resolved).dtype == dtype
    built = resolved.build(output_dir="out", seed=0, use_cpu=True)
    trained = "bfloat16" if built.bf16 else "float16" if built.fp16 else "float32"
    assert trained == dtype


def test_the_plan_names_how_a_run_is_scored():
    found = make_plan(resolve(PAPER), 0).scored_by
    assert (found["engine"], found["dtype"], found["device"]) == ("native", "float32", "cpu")
    weights = sum(p.numel() for p in load_policy("pocket-instruct", "float32").parameters())
    assert found["memory of weights, bytes"] == 4 * weights
    vllm = ("eval_engine=vllm", "eval_tensor_parallel=4")
    at_gpu = make_plan(resolve(PAPER, scale="gpu", arguments=vllm), 0).scored_by
    assert (at_gpu["engine"], at_gpu["GPUs of each layer"]) == ("vllm", 4)
    assert (at_gpu["dtype"], at_gpu["device"]) == ("bfloat16", "the GPU if there is one")


def test_a_run_is_scored_where_it_trains():
    assert str(loading_of(resolve(PAPER)).place) == "cpu"
    assert loading_of(resolve(PAPER)).device == "cpu"
    assert loading_of(resolve(PAPER, scale="gpu")).device is None  # the GPU if there is one


def test_scores_in_another_precision_are_other_scores():
    def keys(*arguments):
        chain = Chain(resolve(PAPER, arguments=arguments))
        return [stage.key for stage in chain.evaluations(chain.start)]

    assert not set(keys()) & set(keys("bf16=true"))
    assert keys() == keys("bf16=false")
