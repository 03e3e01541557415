"""LoRA as TRL trains it: the same adapters to begin with, loss, gradient, and a replayed run."""

import pytest
import torch
import trl
from datasets import Dataset
from peers import QUIET, difference, double, exact_head, length_reward, prompts
from peft import LoraConfig
from test_loss import micro_batch
from test_replay import Player, curve, digit_reward, logs_differ, recorder

import core

TOLERANCE = 1e-10
LORA = {
    "plain": {},
    "gaussian, scaled by the root": {"init_lora_weights": "gaussian", "use_rslora": True},
    "dora": {"use_dora": True, "lora_alpha": 3},
    "random from the start": {"init_lora_weights": False, "target_modules": ["q_proj", "up_proj"]},
}
ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]


def lora(**changes):
    settings = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    return LoraConfig(**settings | changes)


def build(package, model, tokenizer, folder, config, kind=None, rollout=None, **changes):
    rewards, rows = changes.pop("rewards", length_reward), changes.pop("rows", prompts())
    return (kind or package.GRPOTrainer)(
        model=model,
        reward_funcs=rewards,
        args=package.GRPOConfig(output_dir=str(folder), **QUIET | changes),
        train_dataset=rows,
        processing_class=tokenizer,
        rollout_func=rollout,
        peft_config=config,
    )


def trained(model):
    """The adapters' weights by name."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def check(ours, theirs, measured, group, backward):
    """Equal adapters at the start; loss and gradient of one micro-batch."""
    mine, other = trained(ours.model), trained(theirs.model)
    assert mine.keys() == other.keys()
    assert all(torch.equal(weight, other[name]) for name, weight in mine.items())
    losses = [backward(trainer) for trainer in (ours, theirs)]
    assert measured(f"LoRA, {group}: loss", difference(*losses)) < TOLERANCE
    vectors = [
        torch.cat([weights[name].grad.flatten() for name in mine]) for weights in (mine, other)
    ]
    assert vectors[1].abs().max() > 1e-4
    assert measured(f"LoRA, {group}: gradient", difference(*vectors)) < TOLERANCE


@pytest.mark.parametrize("name", LORA)
@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_grpo(beta, name, build_llama, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    pair = [
        build(p, double(build_llama()), tiny_tokenizer, tmp_path, lora(**LORA[name]), beta=beta)
        for p in (core, trl)
    ]
    inputs = micro_batch(double(build_llama()))

    def backward(trainer):
        trainer.model.double().train()  # peft keeps new adapters in single precision
        trainer.current_gradient_accumulation_steps = 1
        loss = trainer.compute_loss(trainer.model, {k: v.clone() for k, v in inputs.items()})
        loss.backward()
        return loss

    check(*pair, measured, f"grpo, beta {beta}, {name}", backward)


@pytest.mark.parametrize("name", LORA)
@pytest.mark.filterwarnings("ignore")  # TRL's own
def test_sft(name, build_llama, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)

    def trainer(package):
        settings = {k: v for k, v in QUIET.items() if "gen" not in k and "completion" not in k}
        return package.SFTTrainer(
            model=double(build_llama()),
            args=package.SFTConfig(output_dir=str(tmp_path), loss_type="nll", **settings),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            peft_config=lora(**LORA[name]),
        )

    pair = [trainer(package) for package in (core, trl)]
    batch = next(iter(pair[0].get_train_dataloader()))

    def backward(one):
        one.model.double().train()
        loss = one.compute_loss(one.model, dict(batch))
        loss.backward()
        return loss

    check(*pair, measured, f"sft, {name}", backward)


def test_replay(build_llama, tiny_tokenizer, tmp_path, measured):
    """A run of ours played through TRL's trainer, with dropout off and the KL to adapters off."""
    options = {
        "max_steps": 8,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "steps_per_generation": 4,
        "learning_rate": 1e-2,
        "beta": 0.1,
        "rewards": digit_reward,
        "rows": prompts(14),
    }
    rollouts = []
    kind = recorder(rollouts)
    config = lora(init_lora_weights=False)
    ours = build(core, build_llama(), tiny_tokenizer, tmp_path / "a", config, kind, **options)
    start = {name: weight.clone() for name, weight in trained(ours.model).items()}
    ours.train()
    player = Player(rollouts)
    config = lora(init_lora_weights=False)
    theirs = build(
        trl, build_llama(), tiny_tokenizer, tmp_path / "b", config, rollout=player, **options
    )
    theirs.train()
    assert next(player.rollouts, None) is None
    mine, other = curve(ours), curve(theirs)
    assert len(mine) == len(other) == 8
    assert other[0]["kl"] > 0.01  # from the first step: random adapters are not the model below
    logs = max(logs_differ(a, b) for a, b in zip(mine, other, strict=True))
    end, peer = trained(ours.model), trained(theirs.model)
    assert max((end[n] - start[n]).abs().max() for n in end) > 1e-2
    weights = max((end[n] - peer[n]).abs().max().item() for n in end)
    assert measured("LoRA run: weights", weights) < 1e-5
    assert measured("LoRA run: all logs", logs) < 1e-4
