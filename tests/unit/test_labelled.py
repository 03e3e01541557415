"""Supervised losses from a head in chunks are those of whole logits, which are not made."""

import pytest
import torch
from datasets import Dataset
from grpo_runs import double, weights

from core import SFTConfig, SFTTrainer
from core.forward import head, labelled
from core.losses.supervised import SUPERVISED

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
FORMS = {
    "padded": {},
    "all tokens": {"completion_only_loss": False},
    "packed": {"packing": True, "max_length": 32},
    "joined": {"padding_free": True},
    "accumulated": {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 3},
}
NAMES = ("loss", "grad_norm", "entropy", "mean_token_accuracy", "num_tokens")
EXACT = 1e-12


@pytest.fixture
def train(build_llama, tiny_tokenizer, tmp_path, monkeypatch):
    def run(chunk, **changes):
        """Weights and logs of a few steps; `chunk` logits at a time, or None for all of them."""
        monkeypatch.setattr(head, "CHUNK", chunk or head.CHUNK)
        settings = {
            "output_dir": str(tmp_path),
            "max_steps": 3,
            "learning_rate": 1e-2,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "per_device_train_batch_size": 6,
        }
        trainer = SFTTrainer(
            model=double(build_llama(seed=1)),
            args=SFTConfig(**settings | changes),
            train_dataset=Dataset.from_list(ROWS),
            eval_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        sizes = []
        trainer.model.lm_head.register_forward_hook(lambda *call: sizes.append(call[-1].size(-1)))
        trainer.train()
        logs = [row[name] for row in trainer.state.log_history if "loss" in row for name in NAMES]
        found = trainer.evaluate()
        after = [found[f"eval_{name}"] for name in ("loss", "entropy", "mean_token_accuracy")]
        return weights(trainer.model), torch.tensor([*logs, *after]), set(sizes)

    return run


@pytest.mark.parametrize("chunk", [1, 1000])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss_type", SUPERVISED)
def test_chunks_change_nothing(loss_type, form, chunk, train):
    whole, parts = (train(c, loss_type=loss_type, **FORMS[form]) for c in (None, chunk))
    assert whole[2] == {64}  # the logits of its vocabulary
    assert parts[2] == {3}  # log-probability, entropy, accuracy
    assert (whole[0] - parts[0]).abs().max() < EXACT
    torch.testing.assert_close(whole[1], parts[1], atol=1e-6, rtol=1e-6)  # counts are in 32 bits


def test_no_labelled_token_has_no_gradient(build_llama, monkeypatch):
    monkeypatch.setattr(head, "CHUNK", 0)
    model = build_llama()
    ids = torch.randint(5, 64, (2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    none = torch.full_like(ids, -100)
    found = labelled.labelled_logps(model, inputs, none, with_logits=False)
    assert found.logps.shape == (0,)
    found.logps.sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_whoever_reads_logits_gets_them(build_llama, monkeypatch):
    monkeypatch.setattr(head, "CHUNK", 0)
    ids = torch.randint(5, 64, (2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    found = labelled.labelled_logps(build_llama(), inputs, ids, with_logits=True)
    assert found.outputs.logits.shape == (2, 7, 64)
