"""The made-up words of benchmarks: as many tokens as asked for, no two prompts alike."""

import pytest

from core.bench.words import word_prompts, word_tokenizer


@pytest.mark.parametrize("vocabulary", [50, 32_000])
def test_prompts_have_exactly_the_tokens_that_were_asked_for(vocabulary):
    texts = word_prompts(16, 12, vocabulary)
    ids = word_tokenizer(vocabulary)(texts)["input_ids"]
    assert texts == [" ".join(f"w{i}" for i in row) for row in ids]
    assert {len(row) for row in ids} == {12}
    assert min(min(row) for row in ids) >= 3  # no special token
    assert len(set(texts)) == 16


def test_an_end_of_another_name_lies_outside_of_the_vocabulary():
    assert word_tokenizer(50).eos_token_id == 1
    assert len(word_tokenizer(50)) == 50
    assert word_tokenizer(50, end="<never>").eos_token_id == 50
