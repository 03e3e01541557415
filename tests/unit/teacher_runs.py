"""Settings, data and read-outs that tests of trainers with a teacher share."""

import torch
from datasets import Dataset

QUIET = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": 3,
    "per_device_train_batch_size": 8,
    "max_completion_length": 12,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "optim": "sgd",
    "max_grad_norm": 0.0,
}
SINGLE = 1e-6  # rotations have 32 bits
SPLITS = {
    "in four micro-batches": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4},
    "padded": {"pad_to_multiple_of": 32},
    "in pieces": {},
}


def sums(count=16):
    texts = [f"{i:02}+{i:02}=" for i in range(count)]
    return Dataset.from_dict({"prompt": texts, "completion": [str(2 * i) for i in range(count)]})


def by_hand(model, teacher, generated, measure, temperature=1.0):
    """The numbers of all tokens, one completion at a time."""
    found = []
    for prompt, ids in zip(generated.prompt_ids, generated.completion_ids, strict=True):
        rows = torch.tensor([[*prompt, *ids]])
        pair = (m(rows).logits[0, len(prompt) - 1 : -1] / temperature for m in (model, teacher))
        found.append(measure(*(x.log_softmax(-1) for x in pair)))
    return torch.cat(found)
