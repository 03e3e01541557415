"""Twin runs in double precision: where ours and TRL's weights differ, and what makes them differ.

Both sides turn positions into rotary angles in single precision, and TRL shifts the positions of
padded prompts: prompts of one length leave nothing of it. TRL's fused head, which computes the loss
of fine-tuning too, is in single precision: one in double precision leaves nothing of that. Adam
divides by the size of a gradient, so that one of rounding alone becomes a step; SGD does not.
"""

import copy
from dataclasses import replace

import pytest
import torch
import trl
from datasets import Dataset
from peers import QUIET, build, double, exact_head, prompts
from test_replay import COMMON, Player, digit_reward, recorder

import core
from core.trainers import comparison

OFF_POLICY = {"steps_per_generation": 4, "num_iterations": 2}
EXACT = 1e-12
PLACES = 4  # digits of an entropy that are compared


def equal_prompts():
    sums = [f"{a}+{b}=" for a in (1, 3, 5, 7) for b in (2, 4, 6, 8)][:14]
    turns = [[{"role": "user", "content": text}] for text in sums]
    return Dataset.from_dict({"prompt": turns, "answer": ["1"] * len(turns)})


def coarse(entropies):
    """Entropies in steps that are wide beside rounding, in the precision of TRL's threshold."""
    return (entropies.float() * 10**PLACES).round() / 10**PLACES


def difference(start, ours, theirs, *, moved):
    """The largest difference of the twins' weights; each twin has moved away from the start."""
    begun, mine, other = (
        torch.cat([p.detach().flatten() for p in model.parameters()])
        for model in (start, ours, theirs)
    )
    assert (mine - begun).abs().max() > moved
    assert (other - begun).abs().max() > moved
    return (mine - other).abs().max().item()


@pytest.fixture
def twins(saved_llama, tiny_tokenizer, tmp_path, monkeypatch):
    """The largest difference of the twins' weights after some steps, and how far they moved."""
    exact_head(monkeypatch)
    start = double(saved_llama)

    def train(rows, optim="adamw_torch", **options):
        shared = COMMON | {"max_steps": 6, "optim": optim, "rewards": digit_reward, "rows": rows}
        shared |= {"learning_rate": 0.05} if optim == "sgd" else {}
        rollouts, trained = [], []
        for package in (core, trl):
            played = {"rollout": Player(rollouts)} if trained else {"kind": recorder(rollouts)}
            folder = tmp_path / f"{package.__name__}-{optim}"
            trainer = build(package, start, tiny_tokenizer, folder, **shared | options, **played)
            for model in filter(None, (trainer.model, trainer.ref_model)):
                double(model)
            trainer.train()
            trained.append(trainer.model)
        return difference(start, *trained, moved=1e-3)

    return train


@pytest.mark.parametrize(
    ("run", "options"),
    [
        ("dapo", {}),
        ("grpo, off-policy", {"loss_type": "grpo", **OFF_POLICY}),
        ("dapo, moving reference", {"beta": 0.1, "sync_ref_model": True}),
    ],
)
def test_prompts_of_one_length_leave_rounding_alone(run, options, twins, measured):
    assert measured(f"twins, {run}: weights", twins(equal_prompts(), **options)) < EXACT


def test_padded_prompts_differ_by_their_angles_and_adam_makes_it_more(twins, measured):
    options = {"loss_type": "grpo", **OFF_POLICY}
    plain = measured("twins, padded, SGD: weights", twins(prompts(14), optim="sgd", **options))
    adam = measured("twins, padded, Adam: weights", twins(prompts(14), **options))
    assert EXACT < plain < 1e-7
    assert plain < adam < 1e-5


def test_a_share_by_entropy_differs_by_its_ties(twins, measured, monkeypatch):
    """Completions of a group begin with one entropy; rounding decides who passes the threshold."""
    chosen = comparison.ENDS["most"]

    def select(entropy, every, share):
        return chosen.select(coarse(entropy), coarse(every), share)

    monkeypatch.setitem(comparison.ENDS, "most", replace(chosen, select=select))
    masked = trl.GRPOTrainer.get_high_entropy_mask

    def get_high_entropy_mask(self, entropies, mask, threshold):
        return masked(self, coarse(entropies), mask, threshold)

    monkeypatch.setattr(trl.GRPOTrainer, "get_high_entropy_mask", get_high_entropy_mask)
    found = twins(equal_prompts(), top_entropy_quantile=0.4)
    assert measured("twins, share by entropy without ties: weights", found) < EXACT


def texts():
    return [f"{a}+{b}={a + b}" + "!" * (a * b % 11) for a in range(1, 9) for b in (2, 15, 30)]


def halves():
    return {"prompt": [t[:3] for t in texts()], "completion": [t[3:] for t in texts()]}


def chats():
    pairs = [({"role": "user", "content": t[:4]}, t[4:]) for t in texts()]
    return {"messages": [[user, {"role": "assistant", "content": end}] for user, end in pairs]}


SFT_RUNS = {
    "prompt and completion": (halves(), {"gradient_accumulation_steps": 2}),
    "chat, cut": (chats(), {"max_length": 16}),
    "packed": ({"text": texts()}, {"packing": True, "max_length": 48}),
    "dynamic fine-tuning without padding": (
        halves(),
        {"loss_type": "dft", "padding_free": True, "max_length": None},
    ),
}


@pytest.fixture
def tuned(saved_llama, tiny_tokenizer, tmp_path):
    """The largest difference of the weights of twins that fine-tune."""
    names = core.SFTConfig.__dataclass_fields__
    shared = {name: value for name, value in QUIET.items() if name in names}
    shared |= {"max_steps": 6, "per_device_train_batch_size": 4, "learning_rate": 1e-3}
    start = double(copy.deepcopy(saved_llama))

    def train(rows, **options):
        trained = []
        for package in (core, trl):
            trainer = package.SFTTrainer(
                model=copy.deepcopy(start),
                args=package.SFTConfig(str(tmp_path / package.__name__), **shared | options),
                train_dataset=Dataset.from_dict(rows),
                processing_class=copy.deepcopy(tiny_tokenizer),
            )
            trainer.train()
            trained.append(trainer.model)
        return difference(start, *trained, moved=1e-4)

    return train


@pytest.mark.parametrize("run", SFT_RUNS)
def test_fine_tuning_leaves_rounding_alone(run, tuned, measured, monkeypatch):
    exact_head(monkeypatch)
    rows, options = SFT_RUNS[run]
    assert measured(f"twins, SFT {run}: weights", tuned(rows, **options)) < EXACT


def test_fine_tuning_differs_by_trls_head_and_adam_makes_it_more(tuned, measured):
    rows, options = SFT_RUNS["chat, cut"]
    sgd = {"optim": "sgd", "learning_rate": 0.05}
    plain = measured("twins, SFT, TRL's head, SGD", tuned(rows, **options, **sgd))
    adam = measured("twins, SFT, TRL's head, Adam", tuned(rows, **options))
    assert EXACT < plain < 1e-7
    assert plain < adam < 1e-4
