"""Models and training data by name, and what is said of those that cannot be read."""

import re
import shutil

import pytest
from architectures import ATTENTION
from grpo_runs import logs
from transformers import LlavaConfig, LlavaForConditionalGeneration

from core import GRPOConfig
from core.data.load import load_training_data
from core.models.builds import SHIPPED
from core.models.folders import CHECKPOINTS
from core.models.load import load_policy, load_tokenizer
from core.trainers.setup import policy_model
from eval.errors import BadValue, DamagedFile, MissingFile, UnknownName


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_answers_in_the_chat_format(name):
    tokenizer = load_tokenizer(name)
    turns = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
    assert tokenizer.apply_chat_template(turns, tokenize=False) == (
        "User: 1+1\n\nAssistant: 2" + tokenizer.eos_token
    )
    model = load_policy(name)
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.eos_token_id == tokenizer.eos_token_id


def test_all_shipped_models_together_are_at_most_16_mb():
    size = sum(path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file())
    assert size <= 16e6


def test_digits_are_tokens_and_any_text_survives():
    tokenizer = load_tokenizer("pocket-instruct")
    text = "Find $\\frac{12}{345}$; 答案是６７ naïve 🙂 \t\n x"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer("1234")["input_ids"]) == 4


def test_training_data_is_english_and_alternates_between_its_suites():
    rows = load_training_data("pocket")
    assert set(rows["language"]) == {"en"}
    assert [row.rsplit("-train-")[0] for row in rows["id"][:4]] == [
        "pocket-gsm8k",
        "pocket-math",
    ] * 2
    assert rows[0]["prompt"][0]["content"].startswith(rows[0]["question"])


def test_names_that_are_nothing_are_refused_with_a_hint(tmp_path):
    with pytest.raises(UnknownName, match="did you mean pocket-instruct"):
        load_policy("pocket-instrct")
    with pytest.raises(MissingFile, match="no folder"):
        load_policy(str(tmp_path / "nothing"))
    with pytest.raises(UnknownName, match="training data 'gsm9k'"):
        load_training_data("gsm9k")


@pytest.fixture
def llava(tmp_path):
    """A model of images and text, in a folder too, and its tokenizer."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    sight = {**sizes, "num_attention_heads": 4, "image_size": 16, "patch_size": 8}
    config = LlavaConfig(
        text_config={**ATTENTION["llama"], "model_type": "llama"},
        vision_config={**sight, "model_type": "clip_vision_model", "projection_dim": 32},
        image_token_index=60,
    )
    model = LlavaForConditionalGeneration(config)
    model.save_pretrained(tmp_path / "llava")
    return model, str(tmp_path / "llava")


def test_a_model_of_images_by_name_is_refused_in_one_line(llava, tmp_path):
    _, folder = llava
    expected = f"{folder}: a LlavaForConditionalGeneration is no causal language model"
    keywords = GRPOConfig(str(tmp_path), use_cpu=True, model_init_kwargs={"dtype": "float32"})
    for load in (load_policy, lambda name: policy_model(name, keywords)):
        with pytest.raises(BadValue, match=re.escape(expected)) as found:
            load(folder)
        assert "\n" not in str(found.value)
    with pytest.raises(MissingFile, match="cannot be had from the hub"):
        policy_model("nobody/nothing", keywords)


@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_a_model_of_images_is_trained_on_text_as_an_object(llava, penalty, make_grpo):
    trainer = make_grpo(model=llava[0], beta=0.1, repetition_penalty=penalty)
    trainer.train()
    assert logs(trainer, "kl")[0] == 0.0
    assert logs(trainer, "grad_norm")[0] > 0


@pytest.mark.parametrize("keep", [0, 100, 100_000])
def test_truncated_weights_are_named(tmp_path, keep):
    folder = tmp_path / "model"
    shutil.copytree(CHECKPOINTS / "pocket-instruct", folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(DamagedFile, match="unreadable"):
        load_policy(str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_damaged_side_files_are_named(tmp_path, name):
    folder = tmp_path / "model"
    shutil.copytree(CHECKPOINTS / "pocket-instruct", folder)
    (folder / name).write_text("{")
    with pytest.raises(DamagedFile, match="unreadable"):
        (load_policy if name == "config.json" else load_tokenizer)(str(folder))
