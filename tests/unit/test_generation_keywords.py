"""`generation_kwargs`: what an engine can do is done, the rest is refused by its name."""

from typing import Any

import pytest
import torch
from transformers.utils import logging

from core import GRPOConfig
from core.configs.engines import ENGINES
from eval.errors import BadValue

HERE = ("native", "equal", "hf", "hf-cb")
QUESTIONS = [[{"role": "user", "content": f"{i}+{i}="}] for i in (1, 1, 2, 2)]


def drawn(trainer):
    torch.manual_seed(0)  # of the engines that draw from the generator of the process
    return trainer.generate(QUESTIONS).completion_ids


@pytest.mark.parametrize("engine", ["native", "equal"])
def test_keywords_of_sampling_are_the_fields_that_say_the_same(make_grpo, engine):
    fields = {"top_p": 0.9, "top_k": 7, "min_p": 0.01, "repetition_penalty": 1.3}
    one = make_grpo(rollout_engine=engine, max_completion_length=5, **fields)
    two = make_grpo(rollout_engine=engine, generation_kwargs={**fields, "max_new_tokens": 5})
    assert drawn(one) == drawn(two) != drawn(make_grpo(rollout_engine=engine))


@pytest.mark.parametrize("engine", HERE)
def test_the_keywords_win_over_the_fields(make_grpo, engine):
    keywords = {"top_k": 1, "max_new_tokens": 3, "eos_token_id": [1, 2], "do_sample": True}
    trainer = make_grpo(rollout_engine=engine, top_k=50, generation_kwargs=keywords)
    assert max(map(len, drawn(trainer))) == 3
    assert len({tuple(row) for row in drawn(trainer)[:2]}) == 1  # of one token that is left


@pytest.mark.parametrize("engine", ["native", "equal", "hf"])
def test_a_completion_ends_at_the_ends_and_strings_of_the_keywords(
    make_grpo, tiny_tokenizer, engine
):
    keywords = {"max_new_tokens": 60, "eos_token_id": 9, "stop_strings": ["a", "b"]}
    found = drawn(make_grpo(rollout_engine=engine, generation_kwargs=keywords))
    ends = {9, *tiny_tokenizer.convert_tokens_to_ids(["a", "b"])}
    assert min(map(len, found)) < 60
    for row in found:
        assert not ends & set(row[:-1])
        assert len(row) == 60 or row[-1] in ends


def test_generate_of_transformers_takes_its_logits_processors(make_grpo):
    keywords = {"no_repeat_ngram_size": 1, "suppress_tokens": [5, 6, 7], "max_new_tokens": 20}
    found = drawn(make_grpo(rollout_engine="hf", generation_kwargs=keywords))
    assert all(len(set(row)) == len(row) and not {5, 6, 7} & set(row) for row in found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "value"), [("num_beams", 4), ("do_sample", False), ("num_return_sequences", 2)]
)
def test_what_no_engine_does_is_refused_by_name(tmp_path, engine, name, value):
    settings = {"output_dir": str(tmp_path), "use_cpu": True, "rollout_engine": engine}
    with pytest.raises(BadValue, match=f"{name}': {value}}} is not supported by rollout_engine="):
        GRPOConfig(**settings, generation_kwargs={name: value})


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"typical_p": 0.9}, "not supported by rollout_engine='native'.*'hf' takes it"),
        ({"stop_string": ["a"]}, "'stop_string': .* is not supported .*stop_strings"),
        ({"stop_strings": [3]}, "'stop_strings': .* expected one or several of type str"),
        ({"eos_token_id": "</s>"}, "expected one or several of type int"),
        ({"top_p": 1.5}, "top_p=1.5: expected above 0 and at most 1"),
        ({"temperature": "hot"}, "temperature='hot': expected above 0"),
        ({"max_new_tokens": 0}, "max_new_tokens=0: expected an integer of at least 1"),
    ],
)
def test_a_keyword_that_cannot_act_says_what_can(tmp_path, keywords, message):
    with pytest.raises(BadValue, match=message):
        GRPOConfig(output_dir=str(tmp_path), use_cpu=True, generation_kwargs=keywords)


def test_keywords_that_change_nothing_are_taken(make_grpo):
    idle = {"do_sample": True, "num_beams": 1, "use_cache": True, "typical_p": None}
    assert drawn(make_grpo(generation_kwargs=idle)) == drawn(make_grpo())


def test_another_temperature_of_sampling_alone_is_warned_of(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.get_logger("core.configs.rollout"), "propagate", True)
    core: Any = logging.get_logger("core")  # Any: the method of transformers has a cache
    core.warning_once.cache_clear()
    GRPOConfig(output_dir=str(tmp_path), use_cpu=True, generation_kwargs={"temperature": 0.7})
    assert "log-probabilities use temperature=1.0; set the field" in caplog.text
