"""Settings, rewards and read-outs of trainings that must not depend on how a batch is split."""

from functools import cache

import torch
from datasets import Dataset

GROUP = 4
EXACT = 1e-10
SINGLE = 1e-6  # transformers adds up the losses that it logs in single precision

QUIET = {
    "logging_steps": 1,
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
}
GRPO = {
    **QUIET,
    "num_generations": GROUP,
    "max_completion_length": 12,
    "learning_rate": 1e-2,
    "num_train_epochs": 2,
}


@cache  # a data set is not changed, and its fingerprint takes 5 ms
def sums(n):
    """Prompts of four symbols."""
    return Dataset.from_dict({"prompt": [f"{i}+{i}=" for i in range(n)]})


def spread_reward(completion_ids, **_):
    return [len(ids) / 3 + ids[0] % 7 for ids in completion_ids]


def steps_of(trainer):
    """Loss and gradient norm of every step."""
    rows = [(r["loss"], r["grad_norm"]) for r in trainer.state.log_history if "loss" in r]
    return torch.tensor(rows, dtype=torch.float64)


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def differences(runs):
    """Largest differences to the first run: of losses, gradient norms and weights."""
    (steps, weights), *others = runs
    assert all(s.shape == steps.shape for s, _ in others)
    loss, norm = torch.stack([(s - steps).abs().amax(0) for s, _ in others]).amax(0).tolist()
    return loss, norm, max((w - weights).abs().max().item() for _, w in others)
