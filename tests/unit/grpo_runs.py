"""Rewards, prompts and read-outs that the tests of the GRPO trainer share."""

from functools import cache

import torch
from datasets import Dataset

from core.losses.policy import LOSS_TYPES


def of_loss(name):
    """Settings of a loss at the first level that it is defined for."""
    return {"loss_type": name, "importance_sampling_level": LOSS_TYPES[name].levels[0]}


def digits(completions, **_):
    """Share of digits in each completion."""
    return [sum(map(str.isdigit, text)) / (len(text) + 1) for text in map(text_of, completions)]


def text_of(completion):
    return completion if isinstance(completion, str) else completion[0]["content"]


@cache  # a data set is not changed, and its fingerprint takes 5 ms
def prompts(n=8):
    messages = [[{"role": "user", "content": f"{i}+{i}="}] for i in range(n)]
    return Dataset.from_dict({"prompt": messages, "answer": [str(2 * i) for i in range(n)]})


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def logs(trainer, name):
    return [row[name] for row in trainer.state.log_history if name in row]


def double(model):
    """Turn a model to double precision throughout, its norms included."""
    for name, module in list(model.named_modules()):
        if type(module).__name__.endswith("RMSNorm"):
            norm = torch.nn.RMSNorm(module.weight.numel(), eps=module.variance_epsilon)
            norm.weight = module.weight
            model.set_submodule(name, norm)
    return model.double()
