"""The sampler of the eval stage on top of an engine."""

from dataclasses import replace

import pytest
import torch

from core.rollout.journal import Journal
from core.rollout.sampler import PolicySampler
from eval.scoring import Decoding

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
