"""Averaged weights over a training of 20 steps, those of TRL's callback."""

import copy
import inspect

import pytest
import torch
import trl
from datasets import Dataset
from peers import difference, double
from safetensors.torch import load_file

import core

TEXTS = Dataset.from_list([{"text": f"{a}+{b}={a + b}"} for a in range(5) for b in range(8)])
QUIET = {
    "max_steps": 20,
    "learning_rate": 1e-2,
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}


@pytest.mark.parametrize(
    "settings",
    [
        {"update_freq": 1},
        {"update_freq": 3, "update_after": 5},
        {"update_freq": 2, "update_after": 7, "ema_power": 0.9, "bias_power": 0.4, "lag": 3},
        {"update_freq": 4, "multiplier": 0.5, "min_ema_multiplier": 0.4},
        {"update_freq": 1, "ema_power": 0.0},
        {"update_freq": 5, "bias_power": 8.0},
    ],
    ids=str,
)
def test_the_average_is_trls(settings, build_llama, tiny_tokenizer, tmp_path, measured):
    ours, theirs = core.BEMACallback(**settings), trl.BEMACallback(**settings)
    torch.set_default_dtype(torch.float64)  # of the copy of the model that TRL's builds
    try:
        trainer = core.SFTTrainer(
            model=double(build_llama()),
            args=core.SFTConfig(output_dir=str(tmp_path), **QUIET),
            train_dataset=TEXTS,
            processing_class=tiny_tokenizer,
            callbacks=[ours, theirs],
        )
        before = copy.deepcopy(trainer.model)
        trainer.train()
    finally:
        torch.set_default_dtype(torch.float32)
    saved = load_file(tmp_path / "bema/model.safetensors")  # TRL's, which was written last
    moved = 0.0
    for (name, weight), start in zip(
        theirs.running_model.named_parameters(), before.parameters(), strict=True
    ):
        assert measured("weights", difference(ours.averages[name].bema, weight)) < 1e-10
        moved = max(moved, difference(weight, start))
        assert torch.equal(saved[name], weight)
    assert moved > 1e-3


def test_arguments_and_defaults_are_trls():
    ours, theirs = (
        inspect.signature(callback.__init__).parameters
        for callback in (core.BEMACallback, trl.BEMACallback)
    )
    assert ours == theirs
