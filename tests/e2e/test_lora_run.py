"""`repro run` with adapters: small files that name their model, scored like any model."""

import json

import pytest
from changed_settings import changed

from core.models.load import load_policy
from core.records.record import read_records
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

SLUG = "deepseekmath-grpo"
LORA = (
    "use_peft=true",
    "lora_r=4",
    "lora_target_modules=all-linear",
    "gradient_checkpointing=true",
)
SMALL = ("max_steps=1", "at_k_samples=2", "at_k_limit=1", "heldout_problems=2")


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_a_run_keeps_adapters_and_scores_what_they_make(repro, settings, tiny_model, root):
    result = repro("run", SLUG, "--jobs", 1, *changed(settings, *SMALL, *LORA))
    assert result.exit_code == 0, result.output
    (record,) = (r for r in read_records(SLUG) if r["kind"] == "run")
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


def test_adapters_enter_the_key_of_a_run_that_has_them():
    given = ((), ("use_peft=true", "lora_r=4"), ("use_peft=true", "lora_r=8"))
    trainings = [Chain(resolve(PAPER, arguments=arguments)).train for arguments in given]
    plain, four, eight = filter(None, trainings)
    assert len({plain.key, four.key, eight.key}) == 3
    assert "lora" not in str(plain.inputs["settings"])


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
