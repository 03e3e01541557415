"""Trainers over tiny models, for the unit tests."""

import pytest
from grpo_runs import digits, prompts
from online_runs import online_trainer

from core import GRPOConfig, GRPOTrainer
from core.data.generated_sets import POCKET, pocket
from core.data.sets import SETS


@pytest.fixture
def make_grpo(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer over a fresh tiny Llama."""

    def build(
        rewards=digits,
        *,
        kind=GRPOTrainer,
        dataset=None,
        model=None,
        evaluation=None,
        rollout=None,
        tokenizer=tiny_tokenizer,
        **changes,
    ):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "max_completion_length": 8,
            "max_steps": 2,
            "logging_steps": 1,
            "learning_rate": 1e-3,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        return kind(
            model or build_llama(),
            rewards,
            GRPOConfig(**settings | changes),
            prompts() if dataset is None else dataset,
            evaluation,
            processing_class=tokenizer,
            rollout_func=rollout,
        )

    return build


@pytest.fixture
def make_online(build_llama, tiny_tokenizer, tmp_path):
    """Build an online trainer over a fresh tiny Llama: `make_online("XPO", alpha=0.1)`."""
    count = iter(range(99))

    def build(kind="OnlineDPO", *, model=None, **changes):
        folder = tmp_path / f"run-{next(count)}"
        return online_trainer(kind, model or build_llama(), tiny_tokenizer, folder, **changes)

    return build


@pytest.fixture
def few_worked(monkeypatch):
    """The data set `pocket-worked` with 75 problems of each suite: encoding all takes seconds."""
    few = pocket("pocket-worked", POCKET, "worked", first=75)
    monkeypatch.setitem(SETS, few.name, few)
