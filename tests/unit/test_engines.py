"""Rollout engines: the same tokens whatever is beside them, and those of transformers."""

from types import SimpleNamespace

import pytest
import torch
from scipy.stats import chi2, ks_2samp
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from core.configs.engines import ENGINES
from core.errors import EngineError
from core.rollout.cached import CachedDecoder
from core.rollout.draw import uniform_stream
from core.rollout.engine import Sampling, in_order
from core.rollout.engines import MAKERS, make_engine
from core.rollout.hf.loops import cache_blocks
from core.rollout.native.native import NativeEngine
from core.rollout.native.plain_forward import plain_forward_needs
from eval.errors import BadValue

PROMPTS = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14, 15], [20], [21, 22, 23, 24]]
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}
OTHERS = {
    "qwen2": lambda **changes: Qwen2ForCausalLM(Qwen2Config(**SMALL | changes)),
    "qwen3": lambda **changes: Qwen3ForCausalLM(Qwen3Config(**SMALL | {"head_dim": 8} | changes)),
    "window": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=256)
    ),
}
PLAIN_FORWARD = {"llama": True, "qwen2": True, "qwen3": True, "window": False, "gpt2": False}


@pytest.fixture(params=PLAIN_FORWARD)
def model(request, build_llama):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        found = (
            build_llama(seed=3) if request.param == "llama" else OTHERS[request.param]()
        ).eval()
        for name, weight in found.named_parameters():
            if "norm" in name:  # they begin as ones, which hides a norm that is left out
                torch.nn.init.uniform_(weight, 0.5, 1.5)
    assert (plain_forward_needs(found) is None) is PLAIN_FORWARD[request.param]
    return found


def complete(engine, prompts=PROMPTS, seeds=None, **options):
    settings = Sampling(**{"max_tokens": 24, "ends": frozenset({1}), **options})
    seeds = range(len(prompts)) if seeds is None else seeds
    return in_order(engine.sample(prompts, settings, seeds), len(prompts))


def tokens(found):
    return [row.tokens for row in found]


@pytest.mark.parametrize("ends", [(), (1, 30, 31, 32)])
def test_greedy_tokens_and_their_log_probabilities_are_those_of_generate(model, ends):
    options = {"temperature": 0.0, "ends": frozenset(ends)}
    theirs = [complete(make_engine("hf", model, 0), [p], **options)[0] for p in PROMPTS]
    for name in ("native", "equal"):
        ours = complete(make_engine(name, model, 0), **options)
        assert tokens(ours) == tokens(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.logps, other.logps, rtol=1e-4, atol=1e-4)
            assert mine.finish == other.finish


def test_a_completion_does_not_depend_on_what_is_beside_it(model):
    prompts = [prompt for prompt in PROMPTS * 3 for _ in range(4)]
    options = {"temperature": 1.3, "ends": frozenset(range(1, 9))}
    whole = complete(NativeEngine(model, rows=64), prompts, **options)
    assert len({len(row.tokens) for row in whole}) > 3
    for rows in (1, 7, 16):
        assert tokens(complete(NativeEngine(model, rows=rows), prompts, **options)) == tokens(whole)
    order = torch.randperm(len(prompts), generator=torch.Generator().manual_seed(0)).tolist()
    some = complete(NativeEngine(model, rows=5), [prompts[i] for i in order], order, **options)
    assert tokens(some) == [whole[i].tokens for i in order]
    for i in (0, 33):
        (alone,) = complete(NativeEngine(model), [prompts[i]], [i], **options)
        assert alone.tokens == whole[i].tokens
        torch.testing.assert_close(alone.logps, whole[i].logps, rtol=1e-4, atol=1e-4)


def test_a_finished_row_may_outlast_the_positions_of_the_model():
    config = GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=8)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = GPT2LMHeadModel(config).eval()
    decoder, alive = CachedDecoder(model), torch.tensor([False, True])
    with torch.no_grad():
        logits = decoder.admit([[5] * 7, [6, 7]], [[0], [1]])
        for token in (8, 9, 10):
            logits = decoder.step(torch.tensor([0, token]), alive)
        expected = model(torch.tensor([[6, 7, 8, 9, 10]])).logits[0, -1]
    torch.testing.assert_close(logits[1], expected)


@pytest.mark.parametrize("autocast", [False, True])
def test_completions_do_not_depend_on_the_number_of_processes(model, autocast):
    options = {"max_tokens": 8, "temperature": 1.3}
    before, found = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found.append(complete(NativeEngine(model), PROMPTS * 3, **options))
    torch.set_num_threads(before)
    assert tokens(found[0]) == tokens(found[1])
    exact = complete(NativeEngine(model), PROMPTS * 3, **options)
    assert (found[0] != exact) is autocast


def test_groups_of_any_size_are_finished(model):
    """A large one behind small ones too, for which the first batch has no room."""
    prompts = [[*PROMPTS[2]]] * 2 + [PROMPTS[4]] * 3 + [PROMPTS[1]] * 9 + [PROMPTS[3]]
    options = {"max_tokens": 6, "temperature": 1.3}
    whole = complete(NativeEngine(model), prompts, **options)
    for rows in (1, 4):
        assert tokens(complete(NativeEngine(model, rows=rows), prompts, **options)) == tokens(whole)


def test_log_probabilities_are_those_of_the_sampling_distribution(model):
    for found, prompt in zip(
        complete(NativeEngine(model), temperature=0.7, ends=frozenset()), PROMPTS, strict=True
    ):
        ids = torch.tensor([prompt + found.tokens])
        with torch.no_grad():
            logits = model(ids).logits[0, len(prompt) - 1 : -1] / 0.7
        expected = logits.log_softmax(-1).gather(-1, ids[0, len(prompt) :, None]).squeeze(-1)
        torch.testing.assert_close(torch.tensor(found.logps), expected, rtol=1e-3, atol=1e-3)


def test_log_probabilities_are_renormalised_over_what_truncation_leaves(build_llama):
    model = build_llama(seed=3).eval()
    found = complete(NativeEngine(model), top_k=1, max_tokens=5)
    assert all(logp == pytest.approx(0, abs=1e-6) for row in found for logp in row.logps)


SETTINGS = {
    "plain": {},
    "temperature": {"temperature": 1.7},
    "top_k": {"top_k": 5, "temperature": 1.5},
    "top_p": {"top_p": 0.7, "temperature": 1.5},
    "min_p": {"min_p": 0.2, "temperature": 1.5},
    "penalty": {"repetition_penalty": 1.8, "temperature": 1.5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_draws_follow_the_distribution_of_generate(build_llama, name):
    """Chi-square of 4000 tokens at 1e-6 a setting: a false alarm in 170,000 runs."""
    model, n, prompt = build_llama(seed=1).eval(), 4000, [5, 6, 7, 7]
    options = SETTINGS[name] | {"ends": frozenset()}
    drawn = torch.tensor(
        tokens(complete(NativeEngine(model), [prompt] * n, max_tokens=1, **options))
    )
    p = distribution(model, prompt, **SETTINGS[name])
    counts = torch.bincount(drawn.squeeze(-1), minlength=len(p)).double()
    assert counts[p == 0].sum() == 0
    seen = n * p > 5
    chi = ((counts - n * p)[seen].square() / (n * p)[seen]).sum().item()
    assert chi < chi2.isf(1e-6, max(1, int(seen.sum()) - 1))


def distribution(model, prompt, temperature=1.0, **truncation):
    """What `generate` draws the next token from, read off its scores."""
    with torch.no_grad():
        found = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=1,
            do_sample=True,
            temperature=temperature,
            eos_token_id=1,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_scores=True,
            **({"top_k": 0} | truncation),
        )
    return found.scores[0][0].double().softmax(-1)


def test_both_modes_draw_completions_alike(build_llama):
    """Lengths of 600 completions each, Kolmogorov-Smirnov at 1e-6; and the mean log-probability."""
    model, prompts = build_llama(seed=5).eval(), [[5, 6]] * 600
    options = {"temperature": 1.0, "ends": frozenset(range(1, 6)), "max_tokens": 40}
    fast = complete(NativeEngine(model), prompts, **options)
    with torch.random.fork_rng():
        torch.manual_seed(11)
        equal = complete(make_engine("equal", model, 0), prompts, **options)
    for measure in (lambda row: len(row.tokens), lambda row: sum(row.logps)):
        assert ks_2samp(*([measure(r) for r in side] for side in (fast, equal))).pvalue > 1e-6


@pytest.mark.parametrize("blank", [0, 2])  # the token whose logit is 0: the padding, or another
@pytest.mark.parametrize("name", SETTINGS)
def test_equal_draws_the_very_tokens_of_generate(build_llama, name, blank):
    model = build_llama(seed=3, pad_token_id=blank).eval()
    prompts = [p for p in PROMPTS for _ in range(3)]
    found = {}
    for engine in ("equal", "hf"):
        with torch.random.fork_rng():
            torch.manual_seed(5)
            options = SETTINGS[name] | {"ends": frozenset(range(1, 5))}
            found[engine] = complete(make_engine(engine, model, 0), prompts, **options)
    assert tokens(found["equal"]) == tokens(found["hf"])
    for mine, other in zip(found["equal"], found["hf"], strict=True):
        torch.testing.assert_close(mine.logps, other.logps, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["native", "equal", "hf"])
def test_a_stop_function_ends_a_completion_at_its_token(build_llama, name):
    model = build_llama(seed=3).eval()
    free = complete(make_engine(name, model, 0), temperature=0.0, ends=frozenset())
    wanted = free[0].tokens[2]
    stopped = complete(
        make_engine(name, model, 0),
        temperature=0.0,
        ends=frozenset(),
        stop=lambda row: row[-1] == wanted,
    )
    for whole, cut in zip(free, stopped, strict=True):
        has = wanted in whole.tokens
        end = whole.tokens.index(wanted) + 1 if has else 24
        assert cut.tokens == whole.tokens[:end]
        assert cut.finish == ("stop" if has else "length")


def test_an_unbounded_repetition_penalty_repeats_nothing(build_llama):
    model = build_llama(seed=2).eval()
    options = {"max_tokens": 10, "repetition_penalty": 1e6, "ends": frozenset()}
    for row in complete(NativeEngine(model, rows=2), temperature=0.0, **options):
        assert len(set(row.tokens)) == len(row.tokens)


def test_each_prompt_is_read_once(build_llama, monkeypatch):
    model, read = build_llama(seed=2).eval().double(), []
    admit = CachedDecoder.admit
    monkeypatch.setattr(
        CachedDecoder,
        "admit",
        lambda self, prompts, rows: read.extend(prompts) or admit(self, prompts, rows),
    )
    complete(NativeEngine(model, rows=4), [p for p in PROMPTS for _ in range(3)])
    assert sorted(map(tuple, read)) == sorted(map(tuple, PROMPTS))


def test_transformers_own_continuous_batching_gives_the_same_greedy_tokens(build_llama):
    model = build_llama(seed=3).eval()
    theirs = complete(make_engine("hf-cb", model, 0), temperature=0.0, max_tokens=8)
    assert tokens(theirs) == tokens(complete(NativeEngine(model), temperature=0.0, max_tokens=8))
    with torch.autocast(
        "cpu", torch.bfloat16
    ):  # its cache cannot hold other than the weights' type
        autocast = complete(make_engine("hf-cb", model, 0), temperature=0.0, max_tokens=8)
    assert tokens(autocast) == tokens(theirs)
    with pytest.raises(BadValue, match="stop strings"):
        complete(make_engine("hf-cb", model, 0), stop=bool)


def test_settings_of_continuous_batching_are_the_users(build_llama):
    model = build_llama(seed=3).eval()
    plain = make_engine("hf-cb", model, 0).batching_config([30, 70])
    assert plain.num_blocks == cache_blocks(30) + cache_blocks(70)
    given = {"max_memory_percent": 0.1, "max_batch_tokens": 64, "use_cuda_graph": False}
    engine = make_engine("hf-cb", model, 0, given)
    found = engine.batching_config([30, 70])
    assert {name: getattr(found, name) for name in given} == given
    assert found.num_blocks is None
    assert found.return_logprobs
    expected = complete(make_engine("hf-cb", model, 0), temperature=0.0, max_tokens=8)
    small = make_engine("hf-cb", model, 0, {"num_blocks": 8, "max_batch_tokens": 64})
    assert tokens(complete(small, temperature=0.0, max_tokens=8)) == tokens(expected)
    with pytest.raises(BadValue, match="batching_config has 'num_block': expected some of "):
        make_engine("hf-cb", model, 0, {"num_block": 8})


def test_failed_requests_of_continuous_batching_are_an_error(build_llama, monkeypatch):
    model = build_llama().eval()
    outputs = {
        "req_0": SimpleNamespace(error=None),
        "req_1": SimpleNamespace(error="no memory"),
    }
    monkeypatch.setattr(type(model), "generate_batch", lambda *_, **__: outputs)
    with pytest.raises(EngineError, match="finished 1 of 5 completions: no memory"):
        complete(make_engine("hf-cb", model, 0))


def test_a_longer_stream_begins_with_the_shorter_one():
    assert torch.equal(uniform_stream(3, 100)[:7], uniform_stream(3, 7))
    assert not torch.equal(uniform_stream(3, 7), uniform_stream(4, 7))
    assert set(MAKERS) == {name for name, row in ENGINES.items() if not row.is_vllm}
