"""The policy that is sampled is the one that is trained: the same precision, by a fast decoder."""

import pytest
import torch
from grpo_runs import digits, prompts
from lora_models import lora

from core import GRPOConfig, GRPOTrainer
from core.forward.logps import evaluating, token_logps
from core.rollout.native.plain_forward import PlainDecoder

SHAPE = {"hidden_size": 64, "head_dim": 32, "initializer_range": 0.1}
PLAIN = {"bf16": False, "gradient_checkpointing": False}


class Watched(GRPOTrainer):
    """Keeps the decoders of rollouts, and the tokens with what sampling and training say of them.

    `compared` has the logarithms of sampling and of training, and which of them are no padding.
    """

    def __init__(self, *args, **keywords):
        self.decoders, self.batches, self.compared = [], [], []
        super().__init__(*args, **keywords)

    def engine(self, model):
        engine = super().engine(model)
        self.decoders.append(type(engine.make_decoder(shared=True)))
        return engine

    def tensors(self, generated):
        batch = super().tensors(generated)
        mask = batch["completion_mask"].bool()
        logps = torch.tensor([logp for row in generated.logps for logp in row])
        return {**batch, "sampled": torch.zeros(mask.shape).masked_scatter(mask, logps)}

    def cut_rollout(self, batch):
        parts = super().cut_rollout(batch)
        for part in parts.micro_batches:
            autocast = self.accelerator.autocast()
            with torch.no_grad(), autocast, evaluating(self.policy()) as policy:
                trained = token_logps(policy, part, 1.0)[0]
            self.batches.append(part)
            self.compared.append((part["sampled"], trained, part["completion_mask"].bool()))
        return parts


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer with TRL's defaults where nothing else is asked for."""

    def build(peft_config=None, **changes):
        settings = {
            "max_steps": 2,
            "num_generations": 8,
            "per_device_train_batch_size": 64,
            "max_completion_length": 24,
            "learning_rate": 1e-3,
            "beta": 0.04,
            "logging_steps": 1,
            "use_cpu": True,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        return Watched(
            build_llama(seed=1, **SHAPE),
            digits,
            GRPOConfig(str(tmp_path / "out"), **settings | changes),
            prompts(),
            processing_class=tiny_tokenizer,
            peft_config=peft_config,
        )

    return build


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bf16": False},
        {"gradient_checkpointing": False},
        {"rollout_policy": "reference"},
        {"gradient_checkpointing_kwargs": {"use_reentrant": True}},
        PLAIN,
    ],
)
def test_the_fast_decoder_is_that_of_the_default_settings(changes, make):
    trainer = make(**changes)
    trainer.train()
    assert trainer.decoders[-2:] == [PlainDecoder, PlainDecoder]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_decoded_fast_in_32_bits(make):
    trainer = make(peft_config=lora(), bf16=False)
    trainer.train()
    assert trainer.decoders[-2:] == [PlainDecoder, PlainDecoder]


def test_gradient_checkpointing_samples_the_same_tokens(make):
    found = []
    for changes in ({"bf16": False}, PLAIN):
        trainer = make(**changes)
        trainer.train()
        found.append(trainer.batches)
    for mine, other in zip(*found, strict=True):
        assert torch.equal(mine["completion_ids"], other["completion_ids"])
        assert torch.equal(mine["sampled"], other["sampled"])


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gradient_checkpointing": False},
        {"rollout_policy": "reference"},
        {"peft_config": lora()},
    ],
)
def test_under_autocast_sampling_and_training_round_alike(changes, make, build_llama):
    """Log-probabilities are nearer than those of 32 bits, and the ratio of both policies is 1.

    To the rounding of bfloat16, of which both have the most part in common.
    """
    trainer = make(max_steps=1, **changes)
    trainer.train()
    (batch,), ((sampled, trained, mask),) = trainer.batches, trainer.compared
    with torch.no_grad():
        exact = token_logps(build_llama(seed=1, **SHAPE), batch, 1.0)[0]

    def apart(one, other):
        return (one - other)[mask].square().mean().sqrt().item()

    assert 0 < apart(sampled, trained) < 0.8 * apart(exact, trained)
    assert ((trained - sampled).exp()[mask].mean() - 1).abs() < 1e-3
