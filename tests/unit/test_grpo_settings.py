"""Each setting alone trains: all weights move, and the last row of the log has loss and rewards."""

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, prompts, text_of

TEXTS = Dataset.from_dict({"prompt": [f"{i}+{i}=" for i in range(8)], "level": list(range(8))})
SETTINGS = [
    *({"loss_type": name} for name in ("grpo", "bnpo", "dr_grpo", "dapo")),
    *({"scale_rewards": scale} for scale in (False, True, "group", "batch", "none")),
    {"importance_sampling_level": "sequence"},
    {"multi_objective_aggregation": "normalize_then_sum"},
    {"num_generations_eval": 1, "eval_strategy": "steps", "eval_steps": 1, "eval_on_start": True},
    {"num_iterations": 2},
    {"steps_per_generation": 4},
    {"generation_batch_size": 16, "gradient_accumulation_steps": 1},
    {"num_generations": 8},  # more than a micro-batch holds
    {"beta": 0.1},
    {"beta": 0.1, "use_bias_correction_kl": False},
    {"beta": 0.1, "sync_ref_model": True, "ref_model_sync_steps": 1},
    {"delta": 2.0},
    {"epsilon_high": 0.5},
    {"temperature": 0.7, "top_p": 0.9, "top_k": 10, "min_p": 0.01, "repetition_penalty": 1.1},
    {"pad_to_multiple_of": 8},
    {"disable_dropout": True},
    {"gradient_checkpointing": True},
    {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}},
    {"bf16": True},
    {"shuffle_dataset": False},
    {"reward_weights": [0.7, 0.3]},
    {"log_completions": True, "log_unique_prompts": True, "num_completions_to_print": 1},
    {"chat_template_kwargs": {"word": "x"}},
    {"torch_empty_cache_steps": 1},
    {"save_strategy": "steps", "save_steps": 1, "save_only_model": True},
    {"logging_steps": 10},
]


def length(completions, **_):
    return [float(len(text)) for text in map(text_of, completions)]


@pytest.mark.parametrize("number", range(len(SETTINGS)), ids=lambda number: str(SETTINGS[number]))
def test_a_setting_trains(number, make_grpo):
    changes, rows = SETTINGS[number], (TEXTS, prompts())[number % 2]
    trainer = make_grpo(
        [digits, length], dataset=rows, evaluation=rows, learning_rate=0.1, **changes
    )
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    last = trainer.state.log_history[-1]
    assert last["train_loss"] is not None
    means = {"rewards/digits/mean", "rewards/length/mean", "reward"}
    assert means <= trainer.state.log_history[0 if "eval_strategy" not in changes else 1].keys()
    still = [
        name
        for name, weight in trainer.model.named_parameters()
        if torch.equal(weight, before[name])
    ]
    assert not still


def test_all_truncated_completions_teach_nothing(make_grpo, tiny_tokenizer):
    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        ids = [[9, 9 + i % 3] for i in range(len(rows))]
        return {"prompt_ids": [[7, 7]] * len(rows), "completion_ids": ids, "logprobs": None}

    assert tiny_tokenizer.eos_token_id not in (9, 10, 11)
    trainer = make_grpo(rollout=rollout, mask_truncated_completions=True, learning_rate=0.1)
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    for name, weight in trainer.model.named_parameters():
        assert torch.equal(weight, before[name]), name
