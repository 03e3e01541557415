"""Leave-one-out REINFORCE as TRL has it: settings, and whole runs in double precision."""

import copy
from dataclasses import fields

import pytest
import torch
import trl
from datasets import Dataset
from peers import QUIET, double, exact_head
from test_interface import defaults
from test_replay import curve, digit_reward, logs_differ

import core

STEPS = 12
COMMON = {
    "max_steps": STEPS,
    "gradient_accumulation_steps": 2,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "warmup_steps": 3,
}
RUNS = {
    "as it comes": {"num_generations": 2},
    "normalised, two iterations, clipped rewards": {
        "num_iterations": 2,
        "normalize_advantages": True,
        "reward_clip_range": (0.05, 0.6),
        "epsilon": 0.01,
        "epsilon_high": 0.02,
    },
    "no reference, two updates": {"beta": 0.0, "steps_per_generation": 4, "temperature": 0.9},
    "a moving reference": {"beta": 0.3, "sync_ref_model": True, "ref_model_sync_steps": 5},
    "windows over two rollouts": {"steps_per_generation": 3, "num_generations": 6},
}


def test_settings():
    """All of TRL's with its defaults; the others are GRPO's here."""
    ours, theirs = defaults(core.RLOOConfig), defaults(trl.RLOOConfig)
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - set(theirs) <= {field.name for field in fields(core.GRPOConfig)}


def sums():
    """Prompts of one length: rotations are in single precision, and padding moves positions."""
    texts = [f"{i:02}+{i:02}=" for i in range(14)]
    return Dataset.from_dict({"prompt": [[{"role": "user", "content": t}] for t in texts]})


def built(package, model, tokenizer, folder, kind, **changes):
    return kind(
        model=copy.deepcopy(model),
        reward_funcs=changes.pop("rewards", digit_reward),
        args=package.RLOOConfig(output_dir=str(folder), **QUIET | COMMON | changes),
        train_dataset=sums(),
        processing_class=tokenizer,
    )


def kinds():
    """Our trainer, which keeps what it samples, and TRL's, which plays it."""
    rollouts = []

    class Recorder(core.RLOOTrainer):
        def generate(self, prompts):
            generated = super().generate(prompts)
            rollouts.append((prompts, generated, torch.get_rng_state()))
            return generated

    class Player(trl.RLOOTrainer):
        def _tokenize_prompts(self, prompts):
            expected, generated, _ = rollouts[0]
            assert prompts == expected  # the same prompts in the same order
            return generated.prompt_ids, None, {}

        def _generate_single_turn(self, *_):
            _, generated, state = rollouts.pop(0)
            torch.set_rng_state(state)
            return generated.completion_ids

    return rollouts, Recorder, Player


@pytest.mark.parametrize("run", RUNS)
def test_replay(run, saved_llama, tiny_tokenizer, tmp_path, measured, monkeypatch):
    exact_head(monkeypatch)
    model = double(copy.deepcopy(saved_llama))
    rollouts, recorder, player = kinds()
    ours = built(core, model, tiny_tokenizer, tmp_path / "a", recorder, **RUNS[run])
    ours.train()
    theirs = built(trl, model, tiny_tokenizer, tmp_path / "b", player, **RUNS[run])
    if theirs.ref_model is not None:
        double(theirs.ref_model)  # it was loaded anew, in single precision
    theirs.train()
    assert not rollouts
    mine, other = curve(ours), curve(theirs)
    assert len(mine) == len(other) == STEPS
    start, end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (model, ours.model, theirs.model)
    )
    assert (end - start).abs().max() > 5e-3  # it did train
    assert measured(f"rloo, {run}: weights", (end - peer).abs().max().item()) < 1e-12
    logs = max(logs_differ(a, b) for a, b in zip(mine, other, strict=True))
    assert measured(f"rloo, {run}: all logs", logs) < 1e-8  # the loss is summed in 32 bits
