"""`repro run` with adapters: small files that name their model, scored, and the same every time."""

import json

import pytest
import torch

from core.models.load import load_policy
from core.run.inputs import train_stage
from core.run.records import read_records
from core.run.resolve import resolve
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

SLUG = "deepseekmath-grpo"
LORA = (
    "use_peft=true",
    "lora_r=4",
    "lora_target_modules=all-linear",
    "gradient_checkpointing=true",
)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_a_run_keeps_adapters_and_scores_what_they_make(repro, settings, tiny_model, root):
    result = repro("run", SLUG, "--jobs", 1, *settings, *LORA)
    assert result.exit_code == 0, result.output
    (record,) = (r for r in read_records(SLUG) if r["kind"] == "run")
    assert record["config"]["use_peft"] == {"value": True, "source": "command line"}
    (saved,) = root.glob("runs/*/model")
    files = {path.name for path in saved.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= files
    assert not files & {"README.md", "training_args.bin", "model.safetensors"}
    config = json.loads((saved / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"]) == (str(tiny_model), 4)
    trained, start = (load_policy(str(folder)).state_dict() for folder in (saved, tiny_model))
    assert not torch.equal(
        trained["model.layers.0.mlp.up_proj.weight"], start["model.layers.0.mlp.up_proj.weight"]
    )
    assert torch.equal(trained["model.norm.weight"], start["model.norm.weight"])
    again = repro("run", SLUG, "--jobs", 1, "--force", *settings, *LORA)
    assert again.exit_code == 0, again.output
    (repeated,) = (r for r in read_records(SLUG) if r["kind"] == "run")
    assert repeated["train"]["weights"] == record["train"]["weights"]
    assert repeated["scores"] == record["scores"]


def test_adapters_enter_the_key_of_a_run_that_has_them():
    plain, four, eight = (
        train_stage(resolve(PAPER, arguments=arguments), 0)
        for arguments in ((), ("use_peft=true", "lora_r=4"), ("use_peft=true", "lora_r=8"))
    )
    assert len({plain.key, four.key, eight.key}) == 3
    assert not [name for name in plain.inputs["settings"] if "lora" in name or "peft" in name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lora_r=8",), "lora_r is set and use_peft is not"),
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
