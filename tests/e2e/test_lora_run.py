"""`repro run` with adapters: small files that name their model, scored like any model."""

import json

import pytest
from changed_settings import changed

from core.models.load import load_policy
from core.records.record import read_records
from core.settings.resolve import resolve
from core.shards.adapters import get_peft_config
from core.stages.chain import Chain
from core.stages.training import adapter_settings
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

SLUG = "deepseekmath-grpo"
LORA = (
    "use_peft=true",
    "lora_r=4",
    "lora_target_modules=all-linear",
    "gradient_checkpointing=true",
)
# d_in + d_out of the projections q, k, v, o, gate, up and down of each of two layers
SIDES = 2 * (64 + 48 + 48 + 64 + 3 * 96)
SMALL = ("max_steps=1", "at_k_samples=2", "at_k_limit=1", "heldout_problems=2")


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_a_run_keeps_adapters_and_scores_what_they_make(repro, settings, tiny_model, root):
    result = repro("run", SLUG, "--jobs", 1, *changed(settings, *SMALL, *LORA))
    assert result.exit_code == 0, result.output
    (record,) = (r for r in read_records(SLUG) if r["kind"] == "run")
    assert record["train"]["trained_parameters"] == 4 * SIDES
    assert record["config"]["use_peft"] == {"value": True, "source": "command line"}
    (saved,) = root.glob("runs/*/model")
    files = {path.name for path in saved.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= files
    assert not files & {"training_args.bin", "model.safetensors"}
    assert "- deepseekmath-grpo\n" in (saved / "README.md").read_text()  # no card of PEFT's
    config = json.loads((saved / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"]) == (str(tiny_model), 4)
    weights = load_policy(str(saved)).state_dict()
    assert weights.keys() == load_policy(str(tiny_model)).state_dict().keys()
    assert {score["n"] for score in record["scores"]} == {4}


OPTIONS = (
    "use_dora=true",
    "use_rslora=true",
    "lora_modules_to_save=lm_head",
    "lora_target_parameters=mlp.gate_proj.weight",
)


def test_adapters_enter_the_key_of_a_run_that_has_them():
    changes = (("lora_r=4",), ("lora_r=8",), *(("lora_r=4", option) for option in OPTIONS))
    given = ((), *(("use_peft=true", *more) for more in changes))
    trainings = [Chain(resolve(PAPER, arguments=arguments)).train for arguments in given]
    assert len({training.key for training in trainings}) == len(given)
    assert "lora" not in str(trainings[0].inputs["settings"])
    unset = trainings[1].inputs["settings"].keys()
    assert not unset & {option.partition("=")[0] for option in OPTIONS}


def test_the_options_of_adapters_reach_peft():
    run = resolve(PAPER, arguments=("use_peft=true", *OPTIONS)).run
    config = get_peft_config(adapter_settings(run))
    assert (config.r, config.lora_alpha, config.lora_dropout) == (16, 32, 0.05)
    assert (config.use_dora, config.use_rslora) == (True, True)
    assert config.modules_to_save == ["lm_head"]
    assert config.target_parameters == ["mlp.gate_proj.weight"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lora_r=8",), "lora_r is set and use_peft is not"),
        (("use_dora=true",), "use_dora is set and use_peft is not"),
        (("use_rslora=true",), "use_rslora is set and use_peft is not"),
        (("lora_modules_to_save=lm_head",), "lora_modules_to_save is set and use_peft is not"),
        (("use_peft=true", "lora_r=0"), "lora_r=0: expected at least 1"),
        (("use_peft=true", "lora_dropout=1.0"), "lora_dropout=1.0: expected below 1"),
    ],
)
def test_settings_that_do_nothing_or_cannot_be_are_refused(arguments, message):
    with pytest.raises(BadValue, match=message):
        resolve(PAPER, arguments=arguments)


def test_layers_that_the_model_lacks_are_one_line(repro, settings):
    result = repro(
        "run", SLUG, "--jobs", 1, *settings, "use_peft=true", "lora_target_modules=none_such"
    )
    assert result.exit_code == 2
    assert "peft_config does not fit the model" in result.stderr
    assert "Traceback" not in result.output
