"""The sampler of the eval stage on top of an engine."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from core.rollout.native.native import NativeEngine
from core.rollout.stops import end_tokens
from core.samplers.journal import Journal
from core.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding

PROMPTS = ["1+1", "a long prompt", "2"]
DECODING = Decoding(samples=4, temperature=1.0, max_tokens=9, seed=5)


def test_every_prompt_gets_its_samples(build_llama, tiny_tokenizer):
    sampler = PolicySampler(build_llama(seed=4), tiny_tokenizer)
    first = sampler(PROMPTS, DECODING)
    assert [len(row) for row in first] == [4, 4, 4]
    assert first == sampler(PROMPTS, DECODING)
    assert first != sampler(PROMPTS, replace(DECODING, seed=6))
    for completion in (c for row in first for c in row):
        assert completion.tokens == 9 or not completion.truncated


def test_a_draw_depends_on_its_prompt_its_number_and_the_seed_alone(
    build_llama, tiny_tokenizer, tmp_path
):
    model = build_llama(seed=4)
    whole = PolicySampler(model, tiny_tokenizer)(PROMPTS, DECODING)
    with Journal(tmp_path / "journal", {}) as journal:
        cut = PolicySampler(model, tiny_tokenizer, journal=journal, chunk=5)
        assert cut(PROMPTS, DECODING) == whole
    assert PolicySampler(model, tiny_tokenizer)(PROMPTS[::-1], DECODING) == whole[::-1]
    fewer = PolicySampler(model, tiny_tokenizer)(PROMPTS[1:2], replace(DECODING, samples=2))
    assert fewer == [whole[1][:2]]


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_and_the_global_random_state_stay(build_llama, tiny_tokenizer, training):
    model = build_llama(seed=4).train(training)
    before = torch.get_rng_state()
    PolicySampler(model, tiny_tokenizer)(["1"], Decoding(temperature=1.0, max_tokens=3))
    assert model.training is training
    assert torch.equal(before, torch.get_rng_state())


def test_an_answer_ends_at_every_token_that_ends_a_rollout(build_llama, tiny_tokenizer):
    """Chat models declare two: with the tokenizer's alone each of their answers would be cut."""
    model = build_llama(seed=4)
    greedy = Decoding(max_tokens=9)
    sampler = PolicySampler(model, tiny_tokenizer)
    (whole,) = sampler.draw([[5, 6, 7]], greedy, [0])
    assert len(whole) == 9
    assert sampler.completion(whole).truncated
    other = whole[0]
    model.generation_config.eos_token_id = [tiny_tokenizer.eos_token_id, other]
    assert end_tokens(model, tiny_tokenizer) == [tiny_tokenizer.eos_token_id, other]
    sampler = PolicySampler(model, tiny_tokenizer)
    (cut,) = sampler.draw([[5, 6, 7]], greedy, [0])
    assert cut == [other]
    assert not sampler.completion(cut).truncated


def test_the_likeliest_token_alone_is_the_greedy_one(build_llama, tiny_tokenizer):
    sampler = PolicySampler(build_llama(seed=4), tiny_tokenizer)
    greedy = sampler(PROMPTS, Decoding(max_tokens=9))
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}):
        assert sampler(PROMPTS, Decoding(max_tokens=9, temperature=1.5, **narrow)) == greedy
    assert sampler(PROMPTS, Decoding(max_tokens=9, temperature=1.5)) != greedy


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_p": 0.5}, "top_p=0.5, top_k=None: at temperature 0"),
        ({"top_k": 5}, "top_p=1.0, top_k=5: at temperature 0"),
        ({"top_k": 0, "temperature": 1.0}, "top_k=0: expected at least 1"),
        ({"system": "Be brief.", "chat": False}, "plain text has no system prompt"),
    ],
)
def test_settings_that_would_change_nothing_are_refused(settings, message):
    with pytest.raises(BadValue, match=message):
        Decoding(**settings)


def test_how_many_are_decoded_at_a_time_changes_no_answer(build_llama, tiny_tokenizer):
    whole = PolicySampler(build_llama(seed=4), tiny_tokenizer)(PROMPTS, DECODING)
    assert PolicySampler(build_llama(seed=4), tiny_tokenizer, rows=1)(PROMPTS, DECODING) == whole


@pytest.fixture
def templated(tiny_tokenizer, build_llama):
    """A sampler whose tokenizer has this chat template."""

    def make(template):
        tokenizer = deepcopy(tiny_tokenizer)
        tokenizer.chat_template = template
        return PolicySampler(build_llama(seed=4), tokenizer)

    return make


USER_ALONE = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}:"
REFUSING = "{% for m in messages %}{{ raise_exception('no system') }}{% endfor %}"


def test_a_system_prompt_comes_before_the_question_or_is_refused(templated, tiny_tokenizer):
    sampler = templated(tiny_tokenizer.chat_template)
    plain, told = sampler.encode("1+1"), sampler.encode("1+1", system="be brief ")
    assert "be brief" in sampler.tokenizer.decode(told)
    assert told[-len(plain) :] == plain
    decoding = Decoding(max_tokens=9)
    (one,) = sampler(["1+1"], replace(decoding, system="be brief"))
    assert one != sampler(["1+1"], decoding)[0]
    for template, message in (
        (USER_ALONE, "omits system messages"),
        (REFUSING, "refuses these turns: no system"),
        (None, "has no chat template, as base models have none.*--mode few-shot"),
    ):
        with pytest.raises(BadValue, match=message):
            templated(template)(["1+1"], replace(decoding, system="be brief"))
    assert templated(None)(["1+1"], replace(decoding, chat=False))


def test_memory_that_runs_out_halves_what_is_decoded_at_a_time(
    build_llama, tiny_tokenizer, monkeypatch
):
    model = build_llama(seed=4)
    whole = PolicySampler(model, tiny_tokenizer)(PROMPTS, DECODING)
    batch, fits = NativeEngine.decode_batch, [3]

    def within(engine, *given):
        if engine.rows > fits[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return batch(engine, *given)

    monkeypatch.setattr(NativeEngine, "decode_batch", within)
    sampler = PolicySampler(model, tiny_tokenizer, rows=12)
    assert sampler(PROMPTS, DECODING) == whole
    assert sampler.engine.rows == 3
    fits[0] = 0
    with pytest.raises(torch.OutOfMemoryError):
        sampler(PROMPTS, DECODING)
    assert sampler.engine.rows == 1
