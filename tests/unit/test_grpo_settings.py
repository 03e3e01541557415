"""Each setting alone trains: all weights move, and the last row of the log has loss and rewards."""

import logging
from copy import deepcopy

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, of_loss, prompts, text_of, weights
from transformers import LlamaForSequenceClassification

from core import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from core.losses.policy import LOSS_TYPES

TEXTS = Dataset.from_dict({"prompt": [f"{i}+{i}=" for i in range(8)], "level": list(range(8))})
EVALUATED = {"eval_strategy": "steps", "eval_steps": 1, "eval_on_start": True}
SETTINGS = [
    *map(of_loss, LOSS_TYPES),
    *({"scale_rewards": scale} for scale in (False, True, "group", "batch", "none")),
    {"importance_sampling_level": "sequence"},
    {"importance_sampling_level": "sequence_token"},
    {"loss_aggregate": "prompt_mean"},
    {"top_entropy_quantile": 0.3},
    {"top_entropy_quantile": 0.3, "top_entropy_tokens": "least", "top_entropy_normalizer": "kept"},
    {"top_entropy_quantile": 0.3, "top_entropy_normalizer": "kept", **EVALUATED},
    {"entropy_coef": 0.01, "loss_aggregate": "prompt_mean", **EVALUATED},
    {"use_adaptive_entropy": True, "entropy_target": 9.0, "save_strategy": "steps"},
    {"off_policy_mask_threshold": 0.1, "num_iterations": 2},
    {"multi_objective_aggregation": "normalize_then_sum"},
    {"num_generations_eval": 1, **EVALUATED},
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


@pytest.fixture
def put_on_hub(tiny_tokenizer, tmp_path, monkeypatch):
    """Put the two revisions of a model in the cache of the hub, each with its chat template."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def put(name, *models):
        folder = tmp_path / "hub" / f"models--me--{name}"
        (folder / "refs").mkdir(parents=True)
        for branch, model in zip(("main", "other"), models, strict=True):
            commit = str(len(branch)) * 40
            (folder / "refs" / branch).write_text(commit)
            tokenizer = deepcopy(tiny_tokenizer)
            tokenizer.chat_template = branch + tiny_tokenizer.chat_template
            for part in (model, tokenizer):
                part.save_pretrained(folder / "snapshots" / commit)
        return f"me/{name}"

    return put


@pytest.fixture
def on_hub(put_on_hub, build_llama):
    """A language model of two revisions."""
    return put_on_hub("named", build_llama(0), build_llama(1))


@pytest.mark.parametrize("kind", ["grpo", "sft"])
def test_a_revision_is_that_of_model_and_tokenizer(kind, on_hub, build_llama, tmp_path):
    init = {"output_dir": str(tmp_path / "out"), "use_cpu": True, "bf16": False}
    init["model_init_kwargs"] = {"revision": "other"}
    if kind == "grpo":
        trainer = GRPOTrainer(on_hub, digits, GRPOConfig(**init), TEXTS)
    else:
        rows = TEXTS.rename_column("prompt", "text")
        trainer = SFTTrainer(on_hub, SFTConfig(**init), train_dataset=rows)
    assert torch.equal(weights(trainer.model), weights(build_llama(1)))
    assert trainer.processing_class.chat_template.startswith("other")


def test_a_reward_model_has_the_revision_too(put_on_hub, build_llama, tiny_tokenizer, tmp_path):
    config = deepcopy(build_llama().config)
    config.num_labels = 1
    named = put_on_hub("rewarding", *(LlamaForSequenceClassification(config) for _ in range(2)))
    init = {"output_dir": str(tmp_path / "out"), "use_cpu": True, "bf16": False}
    init["model_init_kwargs"] = {"revision": "other"}
    trainer = GRPOTrainer(
        build_llama(), named, GRPOConfig(**init), TEXTS, processing_class=tiny_tokenizer
    )
    (tokenizer,) = trainer.reward_processing_classes
    assert tokenizer.chat_template.startswith("other")


def test_keywords_for_a_model_that_is_there_are_not_ignored_silently(
    make_grpo, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    make_grpo(model_init_kwargs={"revision": "other"})
    assert "model_init_kwargs are for a model given by name" in caplog.text
