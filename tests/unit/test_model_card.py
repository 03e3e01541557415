"""The card beside a trained model, and its way to the hub: TRL's scripts end with both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from hub_server import serving
from huggingface_hub import ModelCard

from core import SFTConfig, SFTTrainer
from core.errors import HubError
from core.pages.card import card_of
from core.paper.registry import find_paper
from core.records.record import read_records, standard
from core.records.schema import claims_of, runs_of


@pytest.fixture
def make_sft(build_llama, tiny_tokenizer, tmp_path):
    def build(**changes):
        args = SFTConfig(
            str(tmp_path / "out"),
            use_cpu=True,
            bf16=False,
            max_steps=1,
            disable_tqdm=True,
            **changes,
        )
        rows = Dataset.from_dict({"text": ["1+1=2"]})
        return SFTTrainer(build_llama(), args, train_dataset=rows, processing_class=tiny_tokenizer)

    return build


def card(trainer):
    return ModelCard.load(Path(trainer.args.output_dir) / "README.md")


def test_a_card_names_base_data_method_and_paper(make_grpo):
    trainer = make_grpo()
    trainer.model.config._name_or_path = "base/model"
    trainer.create_model_card("mine", dataset_name="some/data", tags="extra")
    found = card(trainer)
    assert found.data.base_model == "base/model"
    assert found.data.datasets in ("some/data", ["some/data"])
    assert found.data.model_name == "mine"
    assert set(found.data.tags) >= {"generated_from_trainer", "extra", "grpo"}
    text = " ".join(found.text.split())
    assert "# mine [base/model](https://huggingface.co/base/model), trained on [some/data]" in text
    assert "with GRPO, a method of [DeepSeekMath: " in text
    assert "https://arxiv.org/abs/2402.03300" in text
    assert "```bibtex @misc{shao2024deepseekmath," in text


def test_a_card_knows_no_folder_of_this_machine(make_sft, tmp_path):
    trainer = make_sft(hub_model_id="me/named")
    trainer.model.config._name_or_path = str(tmp_path)
    trainer.create_model_card(dataset_name=str(tmp_path))
    found = card(trainer)
    assert found.data.base_model is found.data.datasets is None
    assert found.text.split("\n\n")[:2] == ["\n# named", "A model, trained with SFT."]
    assert str(tmp_path) not in found.content


def test_a_subclass_names_its_own_method(make_grpo):
    trainer = make_grpo()
    paper = {"title": "Mine", "id": "2601.00001", "citation": "@misc{mine}"}
    attributes = {"_name": "My GRPO", "_tag_names": ["my"], "_paper": paper}
    trainer.__class__ = type("Mine", (type(trainer),), attributes)
    trainer.create_model_card()
    assert (
        "with My GRPO, a method of [Mine](https://arxiv.org/abs/2601.00001)" in card(trainer).text
    )
    assert "my" in card(trainer).data.tags


def test_every_checkpoint_has_its_card(make_grpo):
    trainer = make_grpo(save_strategy="steps", save_steps=1, max_steps=1)
    trainer.train()
    assert card(trainer).data.model_name == "out"


@pytest.mark.parametrize("kind", ["grpo", "sft"])
def test_a_push_that_fails_is_one_line_and_loses_nothing(kind, make_grpo, make_sft):
    trainer = make_grpo(max_steps=1) if kind == "grpo" else make_sft()
    trainer.train()
    with pytest.raises(HubError, match=r"OfflineModeIsEnabled.*; the model is in ") as error:
        trainer.push_to_hub(dataset_name="some/data")
    assert "\n" not in str(error.value)
    assert (Path(trainer.args.output_dir) / "model.safetensors").exists()
    assert card(trainer).data.datasets in ("some/data", ["some/data"])


def test_a_hub_out_of_reach_is_noticed_before_training(make_grpo):
    with pytest.raises(HubError, match=r"nothing was uploaded.*look at the connection"):
        make_grpo(push_to_hub=True)


PUSH = """
import sys
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from core import SFTConfig, SFTTrainer

model, out = sys.argv[1:]
trainer = SFTTrainer(
    model,
    SFTConfig(out, use_cpu=True, bf16=False, max_steps=2, save_steps=1, push_to_hub=True,
              hub_model_id="me/named", hub_token="hf_of_a_test", disable_tqdm=True),
    train_dataset=Dataset.from_dict({"text": ["1+1=2"]}),
)
trainer.train()
print(trainer.push_to_hub(dataset_name="some/data").commit_message)
"""


@pytest.mark.long
def test_a_push_sends_model_and_card_and_says_what_failed(build_llama, tiny_tokenizer, tmp_path):
    for part in (build_llama(), tiny_tokenizer):
        part.save_pretrained(tmp_path / "model")
    command = [sys.executable, "-c", PUSH, str(tmp_path / "model"), str(tmp_path / "out")]
    with serving() as (server, env):
        done = subprocess.run(
            command, env=os.environ | env, check=False, capture_output=True, text=True
        )
    assert done.stdout.splitlines()[-1] == "End of training", done.stderr
    assert "a checkpoint was not uploaded: HfHubHTTPError: " in done.stderr
    sent = {line["value"]["path"] for line in server.commits[-1] if line["key"] == "file"}
    assert {"README.md", "model.safetensors", "tokenizer.json"} <= sent


def test_a_run_has_a_card_where_a_verdict_has_no_effect():
    """An effect is not there where a quantity of a claim is not a number."""
    slug = "deepseekmath-grpo"
    records = standard(read_records(slug))
    (claims,) = claims_of(records, "cpu")
    verdict = claims["verdicts"][0]
    (run,) = [one for one in runs_of(records) if one["digest"] == verdict["runs"][0]]
    nothing = {**verdict, "effect": None, "low": None, "high": None}
    texts = [str(card_of(find_paper(slug), run, [one])) for one in (verdict, nothing)]
    assert f"| {verdict['effect']:+.3g} |" in texts[0]
    assert f"| {verdict['verdict']} | - | - |" in texts[1]
