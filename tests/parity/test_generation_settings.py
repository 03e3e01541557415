"""`generation_kwargs` win over the settings of sampling, as in TRL."""

import trl
from peers import QUIET, length_reward, prompts

import core

GIVEN = {"max_new_tokens": 4, "top_p": 0.8, "temperature": 0.9, "no_repeat_ngram_size": 2}


def test_generation_is_set_as_in_trl(saved_llama, tiny_tokenizer, tmp_path):
    def build(package, **changes):
        settings = QUIET | {"output_dir": str(tmp_path), "top_p": 0.5, "generation_kwargs": GIVEN}
        args = package.GRPOConfig(**settings, **changes)
        return package.GRPOTrainer(
            saved_llama, length_reward, args, prompts(), processing_class=tiny_tokenizer
        )

    theirs, ours = build(trl), build(core, rollout_engine="hf")
    assert ours.generation_kwargs == theirs.generation_kwargs
    assert ours.generation_config == theirs.generation_config
