"""Runs that save an average of their weights: which one, after a resume, and what is refused."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from core.configs.weight_schedule import BEMASchedule
from core.explain.jsonl import read_log
from core.models.load import load_policy
from core.paper import Paper
from core.settings.refusals import check_run
from core.settings.resolve import resolve
from core.settings.run_settings import BEMA, EMA, LIVE
from core.shards.bema import STATE
from core.shards.weight_average import WeightAverage
from core.spread.launch import Models
from core.stages.chain import Chain
from core.stages.training import train_model
from eval.errors import BadValue, UnknownName

PAPER = Paper(slug="averaged", title="", family="sft", model="pocket-base", data="pocket-worked")
SHORT = (
    *("max_steps=4", "save_steps=1", "learning_rate=0.01", "per_device_train_batch_size=4"),
    *("heldout_problems=0", "lr_scheduler_type=constant", "logging_steps=1", "save_total_limit=9"),
)
EACH_STEP = ("average_update_freq=1", "average_lag=2")
LORA = ("use_peft=true", "lora_r=4", "lora_target_modules=all-linear", "lora_dropout=0.0")


@pytest.fixture
def data(tmp_path):
    """The folder of a data stage with 24 rows."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [
        {"split": "train", "prompt": f"{a}+{b}=", "completion": f"{a + b} is it"}
        for a in range(6)
        for b in range(4)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def train(data, tiny_model, tmp_path, monkeypatch):
    """Train into a folder: `train("name", *settings)`; checkpoints stay where they are."""
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)

    def run(name, *settings):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        resolved = resolve(PAPER, arguments=(*SHORT, f"model={tiny_model}", *settings))
        train_model(resolved, 0, Models(str(tiny_model)), data, folder)
        return folder

    return run


def weights_in(folder):
    (file,) = folder.glob("*model.safetensors")
    return load_file(file)


def is_equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def averages_along(start, run, schedule):
    """The averages of each weight over the checkpoints of a run, by hand."""
    averages = {name: WeightAverage.of(weight) for name, weight in start.items()}
    for step in range(1, 5):
        weights = weights_in(run / f"trainer/checkpoint-{step}")
        for name, average in averages.items():
            average.update(
                weights[name],
                ema_weight=schedule.ema_weight(step),
                bias_weight=schedule.bias_weight(step),
            )
    return averages


def test_one_training_has_three_models(train, tiny_model):
    runs = {LIVE: train(LIVE)}
    runs |= {name: train(name, f"weights={name}", *EACH_STEP) for name in (EMA, BEMA)}
    logs = [
        [(row["loss"], row["grad_norm"]) for row in read_log(run / "log.jsonl") if "loss" in row]
        for run in runs.values()
    ]
    assert logs[0] == logs[1] == logs[2]
    for step in range(1, 5):
        live, *others = (weights_in(run / f"trainer/checkpoint-{step}") for run in runs.values())
        assert all(is_equal(live, other) for other in others)
    assert is_equal(weights_in(runs[LIVE] / "model"), live)
    schedule = BEMASchedule(update_freq=1, lag=2)
    averages = averages_along(weights_in(tiny_model), runs[LIVE], schedule)
    for part in (EMA, BEMA):
        saved = weights_in(runs[part] / "model")
        assert is_equal(saved, {name: getattr(each, part) for name, each in averages.items()})
        assert not is_equal(saved, live)
        assert (runs[part] / "model/tokenizer.json").is_file()


@pytest.mark.filterwarnings("ignore")  # peft's, about the base model
@pytest.mark.parametrize("adapters", [(), LORA], ids=["weights", "adapters"])
@pytest.mark.parametrize("part", [EMA, BEMA])
def test_a_resumed_run_saves_the_average_of_the_unbroken_one(part, adapters, train, tmp_path):
    settings = (f"weights={part}", *EACH_STEP, *adapters)
    whole = train("whole", *settings)
    sealed = json.loads((whole / "trainer/checkpoint-2/complete.json").read_text())
    assert STATE in str(sealed)
    broken = tmp_path / "broken"
    shutil.copytree(whole / "trainer/checkpoint-2", broken / "trainer/checkpoint-2")
    shutil.copy(whole / "log.jsonl", broken / "log.jsonl")
    train("broken", *settings)
    assert not (broken / "trainer/checkpoint-1").exists()
    assert (broken / "trainer/checkpoint-4").exists()
    assert is_equal(weights_in(whole / "model"), weights_in(broken / "model"))


@pytest.mark.filterwarnings("ignore")
def test_adapters_are_averaged(train, tiny_model):
    live, averaged = train("live", *LORA), train("averaged", *LORA, *EACH_STEP, "weights=bema")
    weights, others = weights_in(live / "model"), weights_in(averaged / "model")
    assert weights.keys() == others.keys()
    assert max((weights[name] - others[name]).abs().max() for name in weights) > 1e-3
    config = json.loads((averaged / "model/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tiny_model)
    assert not (averaged / "model/README.md").exists()
    load_policy(str(averaged / "model"))


def key(*settings):
    return Chain(resolve(PAPER, arguments=settings)).train.key


def test_the_key_of_a_training_knows_which_weights_are_saved():
    averaged = ("weights=bema", *EACH_STEP)
    keys = {
        key(),
        key("weights=ema", *EACH_STEP),
        *(key(*averaged[:2], option) for option in ("average_lag=2", "average_update_after=1")),
        *(key(*averaged, f"average_{part}_power=0.3") for part in ("ema", "bias")),
        key("weights=bema", "average_update_freq=2"),
    }
    assert len(keys) == 7
    assert key("weights=live") == key()
    assert key("weights=ema", *EACH_STEP, "average_bias_power=0.2") in keys


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (("average_lag=3",), "average_lag is set and has no effect on weights=live"),
        (("weights=ema", "average_bias_power=0.3"), "no effect on weights=ema: leave it out"),
        (("weights=bema", "average_update_freq=0"), "update_freq=0: expected a whole number of 1"),
        (("weights=bema", "average_lag=-500"), "lag=-500: expected a number of 0 or more"),
        (("weights=bema",), "no weights are averaged in 36 optimizer steps: the first update is "),
        (("weights=bema", "average_update_after=36", "average_update_freq=1"), "at step 37"),
        (("weights=ema", "max_steps=-1", "average_update_freq=9999"), "are averaged in 1125 optim"),
    ],
)
def test_averages_that_cannot_act_are_refused(settings, line):
    with pytest.raises(BadValue, match=re.escape(line)):
        check_run(resolve(PAPER, arguments=settings))
    with pytest.raises(UnknownName, match="swa"):
        resolve(PAPER, arguments=("weights=swa",))


@pytest.mark.parametrize("family", ["dpo", "grpo", "reward", "evaluation"])
def test_other_families_save_their_live_weights(family):
    with pytest.raises(BadValue, match=r"weights='ema' .*: nothing in a run of the family"):
        resolve(replace(PAPER, family=family, data=""), arguments=("weights=ema",))


def test_a_training_that_is_too_short_is_refused_before_its_first_step(train, tmp_path):
    with pytest.raises(BadValue, match=r"no weights are averaged in 4 .* step 5 \("):
        train("short", "weights=ema", "average_update_freq=5")
    assert not (tmp_path / "short/trainer/checkpoint-1").exists()
