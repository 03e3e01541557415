"""Folders that are no models, or are those of others: each is one line, and none asks or runs."""

import json
import pickle
import shutil
import sys
from contextlib import suppress

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from core import GRPOConfig
from core.cli.main import app
from core.models.fit import check_vocabulary
from core.models.folders import CHECKPOINTS
from core.models.load import load_policy, load_tokenizer
from core.models.shapes import find_shape
from core.rollout.chat import chat_text
from core.samplers.policy import PolicySampler
from core.trainers.setup import policy_model
from eval.errors import BadValue, DamagedFile, ReproError

CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
class OwnConfig(LlamaConfig):
    model_type = "own"
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
"""


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(CHECKPOINTS / "pocket-instruct", tmp_path / "model")


def change(folder, name="config.json", **fields):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def refusal(call, kind: type[ReproError] = ReproError):
    with pytest.raises(kind) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000
    return line


@pytest.mark.parametrize(
    "weights",
    [b"", b"no weights", pickle.dumps({"a": print}), b"PK\x03\x04", b"\x80\x02" + b"." * 9],
)
def test_a_file_that_is_no_weights_is_one_line(folder, weights):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(weights)
    assert "unreadable" in refusal(lambda: load_policy(str(folder)), DamagedFile)


def cut(path):
    path.write_bytes(path.read_bytes()[:1000])


DAMAGES = {
    "config.json: not JSON": lambda folder: (folder / "config.json").write_text("{"),
    "config.json: a JSON object was expected": lambda folder: (folder / "config.json").write_text(
        "[]"
    ),
    "expected config.json": lambda folder: (folder / "config.json").unlink(),
    "model.safetensors: unreadable": lambda folder: cut(folder / "model.safetensors"),
    "holds no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no folder": shutil.rmtree,
}


@pytest.mark.parametrize("line", DAMAGES)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_damaged_folder_is_one_line_before_anything_runs(
    folder, line, command, tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    DAMAGES[line](folder)
    result = CliRunner().invoke(app, [command, "deepseekmath-grpo", f"model={folder}"])
    assert result.exit_code == 2, result.output
    *_, last = result.stderr.splitlines()
    assert line in last
    assert str(folder) in last
    assert "Traceback" not in result.output


def test_a_config_without_a_size_is_one_line(folder):
    change(folder, head_dim=None, hidden_size="many")
    line = refusal(lambda: find_shape(str(folder), folder), DamagedFile)
    assert "config.json: expected every size of a llama" in line


def test_other_weights_are_one_line(folder):
    (folder / "model.safetensors").unlink()
    torch.save([1, 2], folder / "pytorch_model.bin")
    refusal(lambda: load_policy(str(folder)), DamagedFile)


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_size": 96},
        {"num_hidden_layers": 1},
        {"num_hidden_layers": 9},
        {"vocab_size": 7},
        {"intermediate_size": 8},
        {"num_attention_heads": 0},
        {"hidden_size": "many"},
        {"hidden_size": -1},
        {"hidden_act": "none"},
        {"num_hidden_layers": None},
        {"model_type": "nothing"},
        {"model_type": []},
        {"rope_parameters": {"rope_type": "none"}},
    ],
)
def test_a_config_that_does_not_fit_is_one_line(folder, fields):
    change(folder, **fields)
    refusal(lambda: load_policy(str(folder)))


@pytest.mark.parametrize("content", ["[]", "7", "null", '"a"', "{}", "[" * 9999, "\ufeff{", "{,"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_side_files_of_other_content_are_one_line_or_unused(folder, name, content):
    (folder / name).write_text(content)
    for load in (load_policy, load_tokenizer):
        with suppress(ReproError):
            load(str(folder))


@pytest.fixture
def own(folder, monkeypatch):
    """Make a model with code of its own, and a terminal that answers every question with yes."""
    (folder / "own.py").write_text(CODE)
    auto = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    change(folder, model_type="own", auto_map=auto)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asks"))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return folder


def test_code_of_a_model_is_run_only_where_it_is_trusted(own, tmp_path):
    args = GRPOConfig(str(tmp_path), use_cpu=True)
    for load in (load_policy, lambda name: policy_model(name, args)):
        message = refusal(lambda f=load: f(str(own)), BadValue)
        assert "contains custom code" in message  # as TRL's users match
        assert "trust_remote_code=true" in message
    trusted = GRPOConfig(str(tmp_path), use_cpu=True, trust_remote_code=True)
    assert type(load_policy(str(own), trust_code=True)).__name__ == "OwnModel"
    assert type(policy_model(str(own), trusted)).__name__ == "OwnModel"


def test_code_of_a_tokenizer_is_not_run(own):
    change(own, "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Tokens", None]})
    change(own, "tokenizer_config.json", tokenizer_class="Tokens")
    assert "trust_remote_code=true" in refusal(lambda: load_tokenizer(str(own)), BadValue)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("command", ["eval", "run"])
def test_weights_that_are_not_finite_are_refused(folder, value, command, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3] = float(value)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    arguments = {
        "eval": [str(folder), "--benchmarks", "pocket-math", "--limit", "1"],
        "run": ["deepseekmath-grpo", f"model={folder}"],
    }
    result = CliRunner().invoke(app, ["--quiet", command, *arguments[command]])
    assert result.exit_code == 2
    assert "its weights hold NaN or infinity in model.norm.weight; get it again" in result.stderr
    assert result.stderr.count("\n") == 1


def test_weights_of_another_width_are_said_to_be_so(folder):
    change(folder, vocab_size=5)
    line = refusal(lambda: load_policy(str(folder)), DamagedFile)
    assert "its config.json does not fit the shapes of its weights" in line


def sampler_of(folder):
    return PolicySampler(load_policy(str(folder)), load_tokenizer(str(folder)))


def test_ends_that_are_no_tokens_are_refused(folder):
    change(folder, "generation_config.json", eos_token_id="x")
    assert "eos_token_id='x'" in refusal(lambda: sampler_of(folder), BadValue)
    (folder / "generation_config.json").write_text("{}")
    path = folder / "tokenizer_config.json"
    fields = {k: v for k, v in json.loads(path.read_text()).items() if k != "eos_token"}
    path.write_text(json.dumps(fields))
    change(folder, eos_token_id=None)
    assert "found eos_token=None" in refusal(lambda: sampler_of(folder), BadValue)


def test_a_length_that_is_no_number_is_refused(folder):
    change(folder, "tokenizer_config.json", model_max_length="x")
    assert "unreadable" in refusal(lambda: load_tokenizer(str(folder)), DamagedFile)


def test_a_tokenizer_of_a_larger_vocabulary_is_refused(folder, build_llama):
    tokenizer = load_tokenizer(str(folder))
    line = refusal(lambda: check_vocabulary(tokenizer, build_llama()), BadValue)
    assert "a token of id 1023" in line
    assert "embeddings of 64 tokens" in line


@pytest.mark.parametrize("template", ["", "Hello", "{{ messages[0].role }}"])
def test_a_template_without_the_prompt_is_refused(folder, template):
    tokenizer = load_tokenizer(str(folder))
    tokenizer.chat_template = template
    line = refusal(lambda: chat_text(tokenizer, "1 + 1?"), BadValue)
    assert "omits the prompt" in line or "no chat template" in line
