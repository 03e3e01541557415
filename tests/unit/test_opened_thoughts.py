"""A chat template that opens the reasoning itself: rewards of its form see the tag."""

from copy import deepcopy
from dataclasses import replace

import pytest
from datasets import Dataset

from core.rewards import Conditioned, TagCount, ThinkFormat, think_format_reward

COMPLETIONS = [
    "a</think>b",
    "a</think><answer>b</answer>",
    "<think>a</think>b",
    "a<think>b</think>",
    "a",
    "",
]


def messages(text):
    return [[{"role": "assistant", "content": text}]]


@pytest.mark.parametrize("text", COMPLETIONS)
@pytest.mark.parametrize("line", ["", "\n"])
@pytest.mark.parametrize("reward", [ThinkFormat(), TagCount(), think_format_reward])
def test_a_thought_that_the_prompt_opens_is_the_completions(reward, text, line):
    """A tag that ends the prompt counts, and one elsewhere in it does not."""
    opened = reward(completions=messages(text), prompt_texts=["Q<bot><think>" + line])
    assert opened == reward(completions=messages("<think>" + text))
    elsewhere = reward(completions=messages(text), prompt_texts=["<think> is a tag"])
    assert elsewhere == reward(completions=messages(text))


def gets_texts(**keywords):
    return [float("prompt_texts" in keywords)] * len(keywords["completions"])


def test_only_rewards_that_read_them_get_the_texts_of_prompts(make_grpo, tiny_tokenizer):
    """So do those within another reward."""
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.chat_template += "{% if add_generation_prompt %}<think>\n{% endif %}"
    rewards = [think_format_reward, Conditioned(ThinkFormat(), on=ThinkFormat()), gets_texts]
    rows = [{"prompt": [{"role": "user", "content": "1+1"}]}] * 8
    trainer = make_grpo(rewards, dataset=Dataset.from_list(rows), tokenizer=tokenizer)
    generated = trainer.generate([rows[0]["prompt"]] * 4)
    answers = messages("x</think>2") * 4
    scored = trainer.score(rows[:4], replace(generated, completions=answers))
    assert scored.rewards.tolist() == [[1.0, 1.0, 0.0]] * 4
