"""The logged movement of adapters is that of the matrices which they add to the weights."""

import pytest
import torch
from datasets import Dataset
from lora_models import lora
from peft import LoraConfig
from transformers import GPT2Config, GPT2LMHeadModel

from core import SFTConfig, SFTTrainer
from core.laws.adapted_weights import adapted_layers, adapted_model, trained_model
from core.laws.packed_rows import small_model
from core.shards.adapters import add_adapters
from core.stages.watch.adapters import (
    AdapterCallback,
    change_squared,
    factors,
    magnitude_changes,
    movements,
)


def deltas(model):
    return [layer.get_delta_weight("default").detach() for layer in adapted_layers(model)]


@pytest.mark.parametrize("steps", [0, 3])
def test_the_change_is_that_of_the_whole_matrices(steps):
    before, after = (trained_model("lora", 4, steps=n)[0] for n in (steps, steps + 1))
    expected = [
        ((new - old) ** 2).sum().item()
        for old, new in zip(deltas(before), deltas(after), strict=True)
    ]
    found = [change_squared(*both) for both in zip(factors(before), factors(after), strict=True)]
    assert found == pytest.approx(expected, rel=1e-9)
    assert min(found) > 0
    assert [change_squared(one, one) for one in factors(after)] == [0.0] * len(found)


def test_magnitudes_are_compared_with_the_norms_of_the_frozen_rows():
    start = torch.cat([*magnitude_changes(adapted_model("dora", 4))])
    assert start.max() == 0
    model, _ = trained_model("dora", 4, steps=1)
    moved = torch.cat([*magnitude_changes(model)])
    norms = torch.cat([layer.base_layer.weight.norm(dim=1) for layer in adapted_layers(model)])
    assert (moved * norms).max().item() == pytest.approx(1e-2, rel=1e-4)  # a step of Adam
    assert not [*magnitude_changes(adapted_model("lora", 4))]


def moved_rows(start, merged):
    """Return the mean changes of the lengths and of the directions of rows."""
    lengths = (merged.norm(dim=1) - start.norm(dim=1)).abs().mean()
    cosines = torch.nn.functional.cosine_similarity(merged, start, dim=1)
    return lengths.item(), (1 - cosines).mean().item()


@pytest.mark.parametrize("kind", ["lora", "rslora", "dora"])
@pytest.mark.parametrize("steps", [0, 3])
def test_lengths_and_directions_are_those_of_the_merged_rows(kind, steps):
    model, _ = trained_model(kind, 4, steps=steps)
    names = [
        name for name, layer in model.get_base_model().named_modules() if hasattr(layer, "lora_A")
    ]
    found = [*movements(model)]
    start, merged = small_model().double(), model.merge_and_unload()
    expected = [
        moved_rows(start.get_submodule(name).weight, merged.get_submodule(name).weight)
        for name in names
    ]
    assert torch.tensor(found) == pytest.approx(torch.tensor(expected), rel=1e-6, abs=1e-12)
    assert (min(min(pair) for pair in found) > 0) == (steps > 0)


@pytest.mark.parametrize("use_dora", [False, True])
def test_a_row_is_an_output_in_layers_that_keep_their_weights_the_other_way(use_dora):
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 16, "n_positions": 8}
    base = GPT2LMHeadModel(GPT2Config(**sizes)).double()
    start = base.transformer.h[0].attn.c_attn.weight.detach().clone().T
    config = LoraConfig(
        r=2, target_modules=["attn.c_attn"], use_dora=use_dora, fan_in_fan_out=True,
        init_lora_weights=False,
    )  # fmt: skip
    args = SFTConfig(output_dir="unused", use_cpu=True, bf16=False, gradient_checkpointing=False)
    model = add_adapters(base, config, args).double()
    assert [change.shape for change in magnitude_changes(model)] == [(24,)] * use_dora
    ((length, direction),) = movements(model)
    merged = model.merge_and_unload().transformer.h[0].attn.c_attn.weight.T
    assert (length, direction) == pytest.approx(moved_rows(start, merged))


@pytest.mark.parametrize("use_dora", [False, True])
def test_a_training_logs_the_change_of_its_last_steps(
    use_dora, build_llama, tiny_tokenizer, tmp_path
):
    config = SFTConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", max_steps=4,
        logging_steps=2, learning_rate=1e-2, save_strategy="no", per_device_train_batch_size=2,
    )  # fmt: skip
    callback = AdapterCallback()
    trainer = SFTTrainer(
        model=build_llama(seed=1),
        args=config,
        train_dataset=Dataset.from_list(
            [{"prompt": f"{i}=", "completion": "is"} for i in range(4)]
        ),
        processing_class=tiny_tokenizer,
        callbacks=[callback],
        peft_config=lora(use_dora=use_dora),
    )
    callback.trainer, steps = trainer, []
    adapters = [*factors(trainer.model)]

    def remember(*_, **__):
        nonlocal adapters
        after = [*factors(trainer.model)]
        squares = [change_squared(*both) for both in zip(adapters, after, strict=True)]
        steps.append(sum(squares) ** 0.5)
        adapters = after

    trainer.create_optimizer().register_step_post_hook(remember)
    trainer.train()
    logs = [row for row in trainer.state.log_history if "adapters/update_norm" in row]
    found = [row["adapters/update_norm"] for row in logs]
    assert found == pytest.approx([sum(steps[:2]) / 2, sum(steps[2:]) / 2], rel=1e-6)
    assert [("adapters/magnitude_change" in row) for row in logs] == [use_dora] * 2
    assert not use_dora or 0 < logs[0]["adapters/magnitude_change"] < 0.1
    last = torch.corrcoef(torch.tensor([*movements(trainer.model)]).T)[0, 1].item()
    name = "adapters/length_direction_correlation"
    assert logs[-1][name] == pytest.approx(last)
    assert -1 <= logs[0][name] <= 1
    assert logs[0][name] != logs[-1][name]
