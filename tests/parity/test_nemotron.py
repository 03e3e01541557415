"""A mixture of experts that computes no load-balancing loss: fine-tuned as by TRL, without it."""

import pytest
import torch
import trl
from datasets import Dataset
from peers import QUIET
from transformers import NemotronHConfig, NemotronHForCausalLM

import core
from eval.errors import BadValue

SHAPE = {
    "layers_block_type": ["mamba", "moe", "attention"],
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "mamba_num_heads": 2,
    "mamba_head_dim": 16,
    "ssm_state_size": 8,
    "n_groups": 1,
    "chunk_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "moe_shared_expert_intermediate_size": 16,
}
ROWS = [{"text": f"{a}+{b}={a + b}"} for a in range(4) for b in range(2)]


@pytest.fixture
def folder(tiny_tokenizer, tmp_path):
    torch.manual_seed(0)
    tokens = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": tiny_tokenizer.eos_token_id}
    config = NemotronHConfig(vocab_size=len(tiny_tokenizer), **tokens, **SHAPE)
    NemotronHForCausalLM(config).save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def trainer(package, folder, tokenizer, tmp_path, **changes):
    known = {k: v for k, v in QUIET.items() if k in package.SFTConfig.__dataclass_fields__}
    settings = known | {"output_dir": str(tmp_path / "out"), "max_steps": 2, "logging_steps": 1}
    args = package.SFTConfig(**settings | changes)
    rows = Dataset.from_list(ROWS)
    return package.SFTTrainer(folder, args, train_dataset=rows, processing_class=tokenizer)


def test_it_is_fine_tuned_as_by_trl(folder, tiny_tokenizer, tmp_path):
    ours, theirs = (trainer(p, folder, tiny_tokenizer, tmp_path) for p in (core, trl))
    assert ours.aux_loss_enabled is theirs.aux_loss_enabled is False
    assert ours.router_aux_loss_coef == theirs.router_aux_loss_coef == 0.0
    for one in (ours, theirs):
        one.train()
    logs = [[row["loss"] for row in one.state.log_history[:2]] for one in (ours, theirs)]
    assert logs[0] == pytest.approx(logs[1], abs=1e-4)


def test_a_weight_of_a_loss_that_it_lacks_is_refused_before_training(
    folder, tiny_tokenizer, tmp_path
):
    with pytest.raises(BadValue, match="NemotronHForCausalLM does not compute the load-balancing"):
        trainer(core, folder, tiny_tokenizer, tmp_path, router_aux_loss_coef=0.1)
