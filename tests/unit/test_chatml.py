"""ShareGPT's `from` and `value` in both trainers, as TRL converts them."""

from copy import deepcopy

import pytest
import trl
from datasets import Dataset
from grpo_runs import digits
from hypothesis import given
from hypothesis import strategies as st

import core
from core import SFTConfig, SFTTrainer

TEXT = st.text(max_size=3)
MESSAGE = st.one_of(
    st.fixed_dictionaries({"from": TEXT, "value": TEXT}, optional={"weight": st.integers()}),
    st.fixed_dictionaries({"role": TEXT, "content": TEXT}),
)
ROWS = st.dictionaries(
    st.sampled_from(["prompt", "completion", "chosen", "messages", "conversations", "other"]),
    st.one_of(TEXT, st.lists(MESSAGE, min_size=1, max_size=3), st.lists(TEXT, min_size=1)),
)


@given(ROWS)
def test_a_row_is_converted_as_by_trl(row):
    given_row = deepcopy(row)
    assert core.maybe_convert_to_chatml(row) == trl.maybe_convert_to_chatml(deepcopy(row))
    assert row == given_row
    assert core.is_conversational_from_value(row) == trl.is_conversational_from_value(row)


@given(st.sampled_from(["prompt", "chosen", "rejected", "completion", "messages"]), ROWS)
def test_conversations_are_told_as_by_trl(key, row):
    one = {name: value for name, value in row.items() if name in (key, "conversations", "other")}
    assert core.is_conversational(one) == trl.is_conversational(one)


TURNS = [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "2"}]
SHARED = [{"from": turn["role"], "value": turn["content"]} for turn in TURNS]


@pytest.mark.parametrize(
    ("shared", "plain"),
    [
        ({"conversations": SHARED}, {"messages": TURNS}),
        ({"conversations": TURNS}, {"messages": TURNS}),
        (
            {"prompt": SHARED[:1], "completion": SHARED[1:]},
            {"prompt": TURNS[:1], "completion": TURNS[1:]},
        ),
    ],
)
def test_sft_trains_on_the_same_tokens(shared, plain, build_llama, tiny_tokenizer, tmp_path):
    def rows(row):
        trainer = SFTTrainer(
            build_llama(),
            SFTConfig(str(tmp_path), use_cpu=True, report_to="none"),
            train_dataset=Dataset.from_list([row] * 2),
            processing_class=tiny_tokenizer,
        )
        return trainer.train_dataset.to_list()

    assert rows(shared) == rows(plain)


def test_grpo_samples_from_the_same_prompts(make_grpo):
    seen = []

    def reward(prompts, completions, **_):
        seen.append(prompts[0])
        return digits(completions)

    rows = Dataset.from_list([{"prompt": SHARED[:1], "answer": "2"}] * 4)
    trainer = make_grpo(reward, dataset=rows, evaluation={"other": rows}, max_steps=1)
    trainer.train()
    assert seen == [TURNS[:1]]
    assert trainer.eval_dataset["other"][0]["prompt"] == TURNS[:1]
