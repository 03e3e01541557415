"""The averaged weights: their recurrence, a resumed training, adapters, and what is refused."""

import math
import re
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from lora_models import lora
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import LlamaForCausalLM

from core import BEMACallback, SFTConfig, SFTTrainer
from core.configs.weight_schedule import BEMASchedule
from core.shards.bema import STATE
from core.shards.weight_average import WeightAverage
from eval.errors import BadValue, DamagedFile, MissingFile

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
TEXTS = Dataset.from_list(ROWS)
EACH_STEP = {"update_freq": 1, "lag": 2}


@pytest.fixture
def trained(build_llama, tiny_tokenizer, tmp_path):
    """Train some steps with the callback, into a folder; `resume` from a checkpoint in it."""

    def train(callback, folder="run", resume=None, **changes):
        peft_config = changes.pop("peft_config", None)
        settings = {
            "output_dir": str(tmp_path / folder),
            "max_steps": 6,
            "learning_rate": 1e-2,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "save_strategy": "steps",
            "save_steps": 4,
            "report_to": "none",
            "disable_tqdm": True,
            "per_device_train_batch_size": 6,
        }
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**settings | changes),
            train_dataset=TEXTS,
            processing_class=tiny_tokenizer,
            callbacks=[callback],
            peft_config=peft_config,
        )
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    return train


def test_the_worked_example_of_the_card():
    schedule, path = BEMASchedule(update_freq=1), [[0.6, -1.5], [0.3, -1.1], [0.1, -0.9]]
    average = WeightAverage.of(torch.tensor([1.0, -2.0], dtype=torch.float64))
    rows = []
    for step, weight in enumerate(path, start=1):
        beta, alpha = schedule.ema_weight(step), schedule.bias_weight(step)
        theta = torch.tensor(weight, dtype=torch.float64)
        average.update(theta, ema_weight=beta, bias_weight=alpha)
        rows.append([beta, alpha, *average.ema.tolist(), *average.bema.tolist()])
    expected = [
        [0.301511, 0.619044, 0.879395, -1.849244, 0.631778, -1.539722],
        [0.288675, 0.608364, 0.712138, -1.632956, 0.286283, -1.085428],
        [0.27735, 0.598703, 0.542362, -1.429671, 0.003529, -0.771098],
    ]
    assert rows == [pytest.approx(row, abs=5e-7) for row in expected]
    default = BEMASchedule()
    assert [default.ema_weight(400), default.bias_weight(400)] == pytest.approx(
        [0.049386, 0.300222], abs=5e-7
    )


@given(st.integers(1, 7), st.integers(0, 9), st.integers(0, 60))
def test_the_steps_of_the_updates(every, after, steps):
    schedule = BEMASchedule(update_freq=every, update_after=after)
    updates = [step for step in range(1, steps + 1) if schedule.updates_at(step)]
    assert updates == list(range(after + every, steps + 1, every))
    assert schedule.updates_until(steps) == len(updates)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(-9, 9), st.floats(-3, 3))
def test_an_average_moves_and_scales_with_the_weights(path, shift, scale):
    def averaged(values):
        first, *rest = (torch.tensor([v], dtype=torch.float64) for v in values)
        average = WeightAverage.of(first)
        for step, value in enumerate(rest, start=1):
            average.update(value, ema_weight=1 / (1 + step), bias_weight=0.5)
        return average

    plain = averaged(path)
    moved = averaged([shift + scale * value for value in path])
    for part in ("ema", "bema"):
        expected = shift + scale * getattr(plain, part).item()
        assert getattr(moved, part).item() == pytest.approx(expected, abs=1e-9)
    assert plain.ema.item() == pytest.approx(sum(path) / len(path), abs=1e-12)


def test_weights_of_16_bits_are_averaged_in_32():
    average = WeightAverage.of(torch.ones(1, dtype=torch.bfloat16))
    for _ in range(100):
        average.update(torch.zeros(1, dtype=torch.bfloat16), ema_weight=1e-3, bias_weight=0.0)
    assert average.ema.item() == pytest.approx(0.999**100, rel=1e-5)


def test_a_resumed_training_has_the_average_of_the_unbroken_one(trained, tmp_path):
    unbroken = BEMACallback(**EACH_STEP)
    trained(unbroken)
    whole = load_file(tmp_path / "run/bema/model.safetensors")
    resumed = BEMACallback(**EACH_STEP)
    trained(resumed, resume=str(tmp_path / "run/checkpoint-4"))
    again = load_file(tmp_path / "run/bema/model.safetensors")
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    fresh = BEMACallback(**EACH_STEP)
    fresh.on_train_begin(
        SimpleNamespace(),
        SimpleNamespace(global_step=0, is_world_process_zero=True),
        None,
        model=LlamaForCausalLM.from_pretrained(tmp_path / "run/checkpoint-4"),
    )  # a new start at the checkpoint is far from the unbroken average
    name = "model.embed_tokens.weight"
    assert not torch.allclose(fresh.averages[name].start, unbroken.averages[name].start, atol=1e-3)


def test_a_resumed_training_elsewhere_finds_the_averages_by_its_arguments(trained, tmp_path):
    trained(BEMACallback(**EACH_STEP))
    whole = load_file(tmp_path / "run/bema/model.safetensors")
    start = str(tmp_path / "run/checkpoint-4")
    with pytest.raises(MissingFile, match=r"no bema\.safetensors in .*other.checkpoint-4"):
        trained(BEMACallback(**EACH_STEP), "other", resume=start)
    trained(BEMACallback(**EACH_STEP), "other", resume=start, resume_from_checkpoint=start)
    again = load_file(tmp_path / "other/bema/model.safetensors")
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_averages_of_other_weights_and_half_a_file_are_refused(trained, tmp_path):
    trained(BEMACallback(**EACH_STEP))
    start = tmp_path / "run/checkpoint-4"
    tensors = load_file(start / STATE)
    save_file({k: v for k, v in tensors.items() if "norm" not in k}, start / STATE)
    with pytest.raises(DamagedFile, match="averages of other weights"):
        trained(BEMACallback(**EACH_STEP), resume=str(start))
    (start / STATE).write_bytes((start / STATE).read_bytes()[:1000])
    with pytest.raises(DamagedFile, match="no averages of BEMA"):
        trained(BEMACallback(**EACH_STEP), resume=str(start))


@pytest.mark.parametrize("settings", [{}, {"update_freq": 2, "update_after": 5}], ids=str)
def test_a_training_without_an_update_saves_no_average(settings, trained, tmp_path, caplog):
    trained(BEMACallback(**settings))
    assert not (tmp_path / "run/bema").exists()
    assert "no average was saved" in caplog.text


def test_averaging_starts_after_the_burn_in(trained, tmp_path):
    callback = BEMACallback(update_freq=1, update_after=4)
    trained(callback)
    start = load_file(tmp_path / "run/checkpoint-4/model.safetensors")
    for name, average in callback.averages.items():
        assert torch.equal(average.start, start[name])
    with_burn_in = load_file(tmp_path / "run/bema/model.safetensors")
    trained(callback, resume=str(tmp_path / "run/checkpoint-4"))  # the callback begins anew
    again = load_file(tmp_path / "run/bema/model.safetensors")
    assert all(torch.equal(with_burn_in[name], again[name]) for name in again)


@pytest.mark.filterwarnings("ignore")  # peft's, about the base model
def test_adapters_are_averaged_and_saved_as_adapters(trained, build_llama, tmp_path):
    callback = BEMACallback(**EACH_STEP)
    trainer = trained(callback, peft_config=lora())
    assert callback.averages.keys() == {
        n for n, p in trainer.model.named_parameters() if p.requires_grad
    }
    loaded = PeftModel.from_pretrained(build_llama(seed=1), tmp_path / "run/bema")
    live, change = dict(trainer.model.named_parameters()), 0.0
    for name, weight in loaded.named_parameters():
        if "lora_" in name:
            assert torch.equal(weight, callback.averages[name].bema)
            change = max(change, (weight - live[name]).abs().max().item())
        else:
            assert torch.equal(weight, live[name])
    assert change > 1e-3


def test_tied_and_frozen_weights_are_saved_as_they_belong(build_llama, tmp_path):
    model = build_llama(tie_word_embeddings=True)
    model.model.norm.weight.requires_grad_(False)
    callback = BEMACallback(**EACH_STEP)
    args = SimpleNamespace(output_dir=str(tmp_path))
    state = SimpleNamespace(global_step=0, is_world_process_zero=True)
    callback.on_train_begin(args, state, None, model=model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1.0)
    state.global_step = 1
    callback.on_step_end(args, state, None, model=model)
    callback.on_train_end(args, state, None, model=model)
    loaded = LlamaForCausalLM.from_pretrained(tmp_path / "bema")
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    assert torch.equal(loaded.model.norm.weight, model.model.norm.weight)
    average = callback.averages["model.embed_tokens.weight"].bema
    assert torch.equal(loaded.lm_head.weight, average)
    # Both coefficients of step 1 are powers of 3: theta_0 + 3^-0.5 + 3^-0.2.
    moved = average - (model.model.embed_tokens.weight - 1)
    assert moved.mean().item() == pytest.approx(3**-0.5 + 3**-0.2, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"update_freq": 0}, "update_freq=0: expected a whole number of 1 or more"),
        ({"update_freq": 1.5}, "update_freq=1.5"),
        ({"update_freq": math.inf}, "update_freq=inf"),
        ({"update_freq": "4"}, "update_freq='4'"),
        ({"update_after": -1}, "update_after=-1: expected a whole number of 0 or more"),
        ({"ema_power": -0.5}, "ema_power=-0.5: expected a number of 0 or more"),
        ({"bias_power": math.nan}, "bias_power=nan"),
        ({"min_ema_multiplier": 1.5}, "min_ema_multiplier=1.5: expected a number of at most 1"),
        ({"lag": 0, "multiplier": 0}, "= 0 at the first update, step 400: expected 1 or more"),
        ({"lag": 0, "multiplier": 0.001}, "= 0.4 at the first update"),
        ({"device": "tpu9"}, "device='tpu9'): expected a device"),
    ],
    ids=str,
)
def test_settings_that_average_nothing_are_refused(settings, line):
    with pytest.raises(BadValue, match=re.escape(line)):
        BEMACallback(**settings)
