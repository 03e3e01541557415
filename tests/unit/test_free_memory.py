"""How many completions a GPU's memory holds is an upper bound, and no wasteful one."""

from itertools import accumulate

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from core.rollout.engine import Sampling
from core.rollout.native import free_memory, native
from core.rollout.native.free_memory import MOST, ROWS, row_bytes, rows_in_memory, token_bytes
from core.rollout.native.native import NativeEngine
from core.samplers.policy import PolicySampler
from eval.samples.evaluation import Decoding

SIZES = {
    "vocab_size": 700,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}


@pytest.fixture(params=["qwen2", "qwen3"])
def qwen(request):
    """A Qwen of random weights; heads of the second are wider than its states would give."""
    torch.manual_seed(3)
    if request.param == "qwen2":
        return Qwen2ForCausalLM(Qwen2Config(**SIZES)).eval()
    return Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=24)).eval()


def test_a_token_has_a_key_and_a_value_of_each_layer(qwen, build_llama):
    for model in (qwen, qwen.to(torch.bfloat16), build_llama()):
        config = model.config
        head = getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads
        )
        numbers = 2 * config.num_hidden_layers * config.num_key_value_heads * head
        assert token_bytes(model) == numbers * model.dtype.itemsize


@pytest.mark.parametrize(("prompt", "completion"), [(120, 30), (20, 130), (8, 40)])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_what_is_reserved_for_a_completion_is_more_than_it_takes(
    qwen, prompt, completion, temperature
):
    """The peak of the decoder of GPUs, whose buffers grow, over every tensor that it makes."""
    rows = 24
    prompts = [[5 + row % 50] * prompt for row in range(rows)]
    top_p = 0.9 if temperature else 1.0
    sampling = Sampling(
        max_tokens=completion, ends=frozenset(), temperature=temperature, top_p=top_p
    )
    engine = NativeEngine(qwen, rows, static=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        found = list(engine.sample(prompts, sampling, range(rows)))
    assert len(found) == rows
    events = profiler.profiler.kineto_results.events()
    memory = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    peak = max(accumulate(nbytes for _, nbytes in memory))
    reserved = rows * row_bytes(qwen, prompt, completion)
    assert peak < reserved < 3 * peak


@given(st.integers(0, 10**12), st.integers(1, 10**5), st.integers(1, 10**5))
def test_more_memory_holds_more_and_longer_answers_are_fewer(free, prompt, completion):
    torch.manual_seed(3)
    model = MODELS.setdefault("one", Qwen2ForCausalLM(Qwen2Config(**SIZES)).eval())

    def rows(memory, completion):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(free_memory, "free_bytes", lambda _: memory)
            return rows_in_memory(model, prompt, completion)

    assert 1 <= rows(free, completion) <= rows(2 * free, completion) <= MOST
    assert rows(free, 2 * completion) <= rows(free, completion)
    assert rows(None, completion) == ROWS


MODELS = {}


def test_batches_go_by_memory_unless_they_are_given_and_answers_do_not(
    build_llama, tiny_tokenizer, monkeypatch
):
    model, asked = build_llama(seed=4), ["1+1", "2*3", "7-5"]
    decoding = Decoding(samples=4, temperature=0.8, max_tokens=12, seed=3)
    whole = PolicySampler(model, tiny_tokenizer, rows=12)(asked, decoding)
    sampler = PolicySampler(model, tiny_tokenizer)
    length = max(len(sampler.encode(prompt)) for prompt in asked)
    five = 5 / free_memory.USABLE * row_bytes(model, length, 12) + 1
    monkeypatch.setattr(free_memory, "free_bytes", lambda _: five)
    assert sampler(asked, decoding) == whole
    assert sampler.engine.rows == 5
    given = PolicySampler(model, tiny_tokenizer, rows=3)
    assert given(asked, decoding) == whole
    assert given.engine.rows == 3


def test_after_memory_ran_out_the_smaller_batch_stays(build_llama, tiny_tokenizer, monkeypatch):
    model = build_llama(seed=4)
    sampler, decoding = PolicySampler(model, tiny_tokenizer), Decoding(max_tokens=5)
    monkeypatch.setattr(free_memory, "free_bytes", lambda _: 10**12)
    batch, tried = native.NativeEngine.decode_batch, []

    def within(engine, *given):
        tried.append(engine.rows)
        if engine.rows > 300:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return batch(engine, *given)

    monkeypatch.setattr(native.NativeEngine, "decode_batch", within)
    for _ in range(2):
        sampler(["1+1"], decoding)
    assert tried == [1024, 512, 256, 256]
