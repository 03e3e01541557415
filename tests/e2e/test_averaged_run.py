"""Runs that average their weights: what is saved and scored, a resume, and what is refused."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from core.configs.weight_schedule import BEMASchedule
from core.explain.jsonl import read_log
from core.models.load import load_policy
from core.paper import Paper
from core.records.found import models_here
from core.records.places import MODELS
from core.records.schema import runs_of
from core.run.leftovers import leftovers
from core.settings.refusals import check_run
from core.settings.resolve import resolve
from core.settings.run_settings import BEMA, EMA, LIVE
from core.shards.bema import STATE
from core.shards.weight_average import WeightAverage
from core.spread.launch import Models
from core.stages.chain import Chain
from core.stages.record import run_chain
from core.stages.training import train_model
from core.verdicts.consistency import identical_trainings
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
    plain, averaged = train("plain"), train("averaged", *EACH_STEP)
    logs = [
        [(row["loss"], row["grad_norm"]) for row in read_log(run / "log.jsonl") if "loss" in row]
        for run in (plain, averaged)
    ]
    assert logs[0] == logs[1]
    for step in range(1, 5):
        live, other = (weights_in(run / f"trainer/checkpoint-{step}") for run in (plain, averaged))
        assert is_equal(live, other)
    assert is_equal(weights_in(plain / "model"), live)
    assert is_equal(weights_in(averaged / "model"), live)
    assert [path.name for path in plain.glob("model*")] == ["model"]
    schedule = BEMASchedule(update_freq=1, lag=2)
    averages = averages_along(weights_in(tiny_model), plain, schedule)
    for part in (EMA, BEMA):
        saved = weights_in(averaged / f"model-{part}")
        assert is_equal(saved, {name: getattr(each, part) for name, each in averages.items()})
        assert not is_equal(saved, live)
        assert (averaged / f"model-{part}/tokenizer.json").is_file()


@pytest.mark.filterwarnings("ignore")  # peft's, about the base model
@pytest.mark.parametrize("adapters", [(), LORA], ids=["weights", "adapters"])
def test_a_resumed_run_saves_the_averages_of_the_unbroken_one(adapters, train, tmp_path):
    settings = (*EACH_STEP, *adapters)
    whole = train("whole", *settings)
    sealed = json.loads((whole / "trainer/checkpoint-2/complete.json").read_text())
    assert STATE in str(sealed)
    broken = tmp_path / "broken"
    shutil.copytree(whole / "trainer/checkpoint-2", broken / "trainer/checkpoint-2")
    shutil.copy(whole / "log.jsonl", broken / "log.jsonl")
    train("broken", *settings)
    assert not (broken / "trainer/checkpoint-1").exists()
    assert (broken / "trainer/checkpoint-4").exists()
    for folder in MODELS.values():
        assert is_equal(weights_in(whole / folder), weights_in(broken / folder))


@pytest.mark.filterwarnings("ignore")
def test_adapters_are_averaged(train, tiny_model):
    run = train("averaged", *LORA, *EACH_STEP)
    weights, others = weights_in(run / "model"), weights_in(run / "model-bema")
    assert weights.keys() == others.keys()
    assert max((weights[name] - others[name]).abs().max() for name in weights) > 1e-3
    config = json.loads((run / "model-bema/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tiny_model)
    assert not (run / "model-bema/README.md").exists()
    load_policy(str(run / "model-bema"))


def key(*settings):
    return Chain(resolve(PAPER, arguments=settings)).train.key


def test_the_key_of_a_training_knows_the_averages_and_not_which_weights_are_scored():
    keys = {
        key(),
        key(*EACH_STEP),
        *(key(EACH_STEP[0], option) for option in ("average_lag=3", "average_update_after=1")),
        *(key(*EACH_STEP, f"average_{part}_power=0.3") for part in ("ema", "bias")),
        key("average_update_freq=2"),
    }
    assert len(keys) == 7
    assert key("weights=live") == key()
    assert {key(f"weights={weights}", *EACH_STEP) for weights in MODELS} == {key(*EACH_STEP)}
    assert key("weights=ema") == key("weights=bema", "average_update_freq=400") != key()


def test_each_kind_of_weights_is_a_policy_of_its_own():
    chains = [Chain(resolve(PAPER, arguments=(*EACH_STEP, f"weights={name}"))) for name in MODELS]
    live, *averages = (chain.policy for chain in chains)
    assert live is chains[0].train
    assert live.key == chains[1].train.key == chains[2].train.key
    assert len({live.key, *(policy.key for policy in averages)}) == 3
    folders = [Path(policy.model) for policy in (live, *averages)]
    assert [folder.name for folder in folders] == ["model", "model-ema", "model-bema"]
    assert len({folder.parent for folder in folders}) == 1
    assert [stage.name for stage in chains[1].stages].count("train") == 1


def test_arms_of_one_training_train_once_and_are_scored_apart(data, monkeypatch, tmp_path):
    """By the commands of a user; the records say whose weights were scored, and `repro clean`
    keeps the models of all three arms."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    arms = {name: {"weights": name, "average_update_freq": 1} for name in MODELS}
    same = {"same_as": LIVE}
    arms = {name: arm | (same if name != LIVE else {}) for name, arm in arms.items()}
    paper = replace(PAPER, arms=arms, benchmarks=("gsm8k",))
    few = (f"data={data / 'rows.jsonl'}", "max_steps=2", "heldout_problems=0", "eval_limit=2")
    chains = {arm: Chain(resolve(paper, arm=arm, arguments=few)) for arm in arms}
    records = {arm: run_chain(chain) for arm, chain in chains.items()}
    assert len([*(tmp_path / "runs").glob("train-*")]) == 1
    digests = {arm: record["train"]["weights"] for arm, record in records.items()}
    assert len({*digests.values()}) == 3
    models = models_here()
    assert {arm: models[digest].name for arm, digest in digests.items()} == MODELS
    assert [record["curves"] for record in records.values()] == [records[LIVE]["curves"]] * 3
    assert all("averages" not in record["train"] for record in records.values())
    assert list(identical_trainings(paper, runs_of(records.values()))) == []
    assert leftovers() == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (("average_lag=3",), "average_lag is set and has no effect, as no weights are averaged"),
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
