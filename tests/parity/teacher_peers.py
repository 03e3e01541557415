"""Settings and data of comparisons of trainers with a teacher, those here and TRL's."""

from dataclasses import MISSING, fields

import torch

STEPS = 20
QUIET = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": STEPS,
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "learning_rate": 0.05,
    "lr_scheduler_type": "constant",
    "optim": "sgd",
    "max_grad_norm": 0.0,
}


def conversations(count=8):
    texts = [f"{i:02}+{i:02}=" for i in range(count)]  # of one length: rotations have 32 bits
    return [[{"role": "user", "content": text}] for text in texts]


def of_weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def defaults(config):
    return {
        f.name: f.default if f.default_factory is MISSING else f.default_factory()
        for f in fields(config)
    }
