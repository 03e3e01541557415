"""Where policy and reference are equal, the KL and its gradient are 0, not rounding errors."""

import pytest
import torch
from architectures import built
from datasets import Dataset
from grpo_runs import logs, weights
from test_engines import OTHERS

from core.forward import micro_pieces

PROMPTS = ["1", "12+3=", "4*5-6/7=", "8+9", "10-2*3", "a b c d e f", "7", "1+1=2, 3+4="]


KINDS = ("llama", "mixtral", *OTHERS)
NO_ROUTER = {"router_aux_loss_coef": 0.0}  # its loss has a gradient of its own


def equal(completions, **_):
    """No completion is better than another: all advantages are 0."""
    return [1.0] * len(completions)


def lengths(completion_ids, **_):
    return [len(ids) / 7 + ids[0] % 5 for ids in completion_ids]


def models(build_llama):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        others = {name: make() for name, make in OTHERS.items()}
    return {"llama": build_llama(seed=1), "mixtral": built("mixtral", **NO_ROUTER), **others}


@pytest.fixture
def make(make_grpo):
    """A trainer whose micro-batches hold prompts and completions of several lengths."""

    def build(reward=equal, **changes):
        settings = {
            "num_generations": 4,
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 4,
            "max_completion_length": 12,
            "disable_dropout": True,
            "max_steps": 1,
            "beta": 0.5,
        }
        dataset = Dataset.from_dict({"prompt": PROMPTS})
        return make_grpo(reward, dataset=dataset, **settings | changes)

    return build


SETTINGS = {
    "as TRL's": {"bf16": True, "gradient_checkpointing": True},
    "two updates": {"steps_per_generation": 4, "gradient_accumulation_steps": 2},
    "without correction": {"use_bias_correction_kl": False},
}


def assert_nothing_moves(trainer):
    """Adam would turn gradients of 1e-8 into steps of the learning rate."""
    before = weights(trainer.model).clone()
    trainer.train()
    assert logs(trainer, "grad_norm") == logs(trainer, "kl") == [0.0]
    assert torch.equal(weights(trainer.model), before)


@pytest.mark.parametrize("kind", KINDS)
def test_no_weight_moves_without_advantages(kind, make, build_llama, monkeypatch):
    monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 60)
    assert_nothing_moves(make(model=models(build_llama)[kind]))


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_weight_moves_under_other_settings(settings, make, monkeypatch):
    monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 60)
    assert_nothing_moves(make(**SETTINGS[settings]))


@pytest.mark.parametrize("tokens", [1, 10**6])
def test_no_weight_moves_whatever_the_pieces_are(tokens, make, monkeypatch):
    monkeypatch.setitem(micro_pieces.TOKENS, "cpu", tokens)
    assert_nothing_moves(make())


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_ratio_is_1_wherever_the_old_policy_is_kept(kind, make, build_llama):
    """A width of 0 clips every ratio that is not 1."""
    trainer = make(
        lengths,
        model=models(build_llama)[kind],
        num_iterations=2,
        epsilon=0.0,
        gradient_accumulation_steps=4,
    )
    trainer.train()
    assert logs(trainer, "clip_ratio/region_mean") == logs(trainer, "kl") == [0.0]
    assert logs(trainer, "grad_norm")[0] > 1e-3


def test_evaluation_compares_the_same_rows(make, build_llama):
    rows = Dataset.from_dict({"prompt": PROMPTS})
    for kind in ("llama", "gpt2"):
        model = models(build_llama)[kind]
        trainer = make(model=model, evaluation=rows, per_device_eval_batch_size=16)
        assert trainer.evaluate()["eval_kl"] == 0.0


def test_only_the_router_of_experts_moves_weights(make):
    """Its loss is one of a whole micro-batch, through which the reference then goes too."""
    trainer = make(model=built("mixtral"))
    trainer.train()
    assert logs(trainer, "kl") == [0.0]
    assert logs(trainer, "aux_loss")[0] > 1
    assert logs(trainer, "grad_norm")[0] > 1e-6
