"""TRL's own scripts, with `core` for `trl` in their imports, train from the command line."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
import torch
import trl.scripts
from datasets import Dataset
from huggingface_hub import ModelCard
from safetensors.torch import load_file

from core.collect.reward_sources import reward_model
from core.errors import HubError
from eval.errors import BadValue

SCRIPTS = Path(trl.scripts.__file__).parent
COMMON = [
    "--use_cpu",
    "--bf16",
    "false",
    "--max_steps",
    "2",
    "--logging_steps",
    "1",
    "--disable_tqdm",
    "true",
]
COMMON += ["--learning_rate", "0.01", "--save_steps", "1", "--per_device_train_batch_size", "4"]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Import a script of TRL's that names `core` instead."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def load(name):
        text, found = re.subn(r"\bfrom trl\b", "from core", (SCRIPTS / f"{name}.py").read_text())
        assert found >= 2
        assert not re.search(r"^\s*(import|from) trl", text, re.MULTILINE)
        module = module_from_spec(spec_from_loader(f"script_{name}", None))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
        return module

    return load


@pytest.fixture
def model(build_llama, tiny_tokenizer, tmp_path):
    for part in (build_llama(), tiny_tokenizer):
        part.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def data(tmp_path):
    """A dataset of both forms in a folder, with a split to train on and one to test on."""
    turns = [[{"role": "user", "content": f"{i}+{i}="}] for i in range(8)]
    answers = [[{"role": "assistant", "content": f"\\boxed{{{2 * i}}}"}] for i in range(8)]
    for form, columns in {
        "prompts": {"prompt": turns, "solution": [f"${2 * i}$" for i in range(8)]},
        "pairs": {"prompt": turns, "completion": answers},
        "preferences": {"prompt": turns, "chosen": answers, "rejected": answers[1:] + answers[:1]},
        "labelled": {
            "prompt": turns,
            "completion": answers,
            "label": [i % 2 == 0 for i in range(8)],
        },
        "shared": {
            "conversations": [
                [{"from": m["role"], "value": m["content"]} for m in (*p, *a)]
                for p, a in zip(turns, answers, strict=True)
            ]
        },
    }.items():
        for split in ("train", "test"):
            (tmp_path / form).mkdir(exist_ok=True)
            Dataset.from_dict(columns).to_json(tmp_path / form / f"{split}.jsonl")
    return tmp_path


@pytest.mark.parametrize("losses", [["sigmoid"], ["ipo", "sft"]])
def test_dpo(losses, script, model, data):
    out = data / "out"
    run(
        script("dpo"),
        *("--model_name_or_path", model, "--dataset_name", data / "preferences"),
        *("--output_dir", out, "--eval_strategy", "steps", "--eval_steps", "1"),
        *("--loss_type", *losses, "--beta", "0.2"),
    )
    rows = [row for row in log(out) if "rewards/margins" in row]
    assert len(rows) == 2
    assert rows[0]["rewards/margins"] == pytest.approx(0, abs=1e-5)
    held_out = [row for row in log(out) if "eval_rewards/margins" in row]
    assert len(held_out) == 2
    assert load_file(out / "model.safetensors")
    assert "Direct Preference Optimization" in (out / "README.md").read_text()


@pytest.mark.parametrize("form", ["labelled", "preferences"])
def test_kto(form, script, model, data):
    out = data / "out"
    run(
        script("kto"),
        *("--model_name_or_path", model, "--dataset_name", data / form, "--output_dir", out),
        *("--eval_strategy", "steps", "--eval_steps", "1", "--desirable_weight", "1.2"),
    )
    rows = [row for row in log(out) if "kl" in row]
    assert len(rows) == len([row for row in log(out) if "eval_kl" in row]) == 2
    assert rows[0]["rewards/chosen"] == pytest.approx(0, abs=1e-5)
    assert load_file(out / "model.safetensors")
    assert "Prospect Theoretic" in (out / "README.md").read_text()


@pytest.mark.parametrize("adapters", [[], ["--use_peft", "--lora_r", "4"]])
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_reward(adapters, script, model, data):
    """`ModelConfig` gives adapters the task of a language model, with which TRL's raises."""
    out = data / "out"
    run(
        script("reward"),
        *("--model_name_or_path", model, "--dataset_name", data / "preferences"),
        *("--output_dir", out, "--eval_strategy", "steps", "--eval_steps", "1"),
        *("--center_rewards_coefficient", "0.01", *adapters),
    )
    assert len([row for row in log(out) if "accuracy" in row]) == 2
    assert len([row for row in log(out) if "eval_accuracy" in row]) == 2
    assert "Reward" in (out / "README.md").read_text()
    assert reward_model(str(out), {}).config.num_labels == 1


def run(module, *words):
    module.main(*module.make_parser().parse_args_and_config([*map(str, words), *COMMON]))


def log(folder):
    (state,) = Path(folder).glob("checkpoint-2/trainer_state.json")
    return json.loads(state.read_text())["log_history"]


def test_grpo(script, model, data):
    out = data / "out"
    run(
        script("grpo"),
        *("--model_name_or_path", model, "--dataset_name", data / "prompts", "--output_dir", out),
        *("--reward_funcs", "accuracy_reward", "think_format_reward", "reasoning_accuracy_reward"),
        *("get_soft_overlong_punishment", "--num_generations", "4", "--max_completion_length", "8"),
        *(
            "--scale_rewards",
            "none",
            "--eval_strategy",
            "steps",
            "--eval_steps",
            "1",
            "--top_p",
            "0.9",
        ),
        *("--per_device_eval_batch_size", "4", "--num_generations_eval", "2", "--beta", "0.1"),
    )
    rows = log(out)
    named = {
        f"rewards/{name}/mean"
        for name in (
            "accuracy_reward",
            "think_format_reward",
            "reasoning_accuracy_reward",
            "soft_overlong_punishment_reward",
        )
    }
    assert all(named | {"kl"} <= row.keys() for row in rows if "loss" in row)
    assert any("eval_reward" in row for row in rows)
    assert "model.safetensors" in {path.name for path in out.iterdir()}
    assert ModelCard.load(out / "README.md").data.tags == ["generated_from_trainer", "grpo"]


def test_grpo_from_a_config_file_with_adapters_and_a_reward_of_its_own(
    script, model, data, monkeypatch
):
    (data / "own_rewards.py").write_text(
        "def digits(completions, **_):\n"
        "    return [float(sum(map(str.isdigit, c[0]['content']))) for c in completions]\n"
    )
    monkeypatch.chdir(data)
    monkeypatch.syspath_prepend(str(data))
    (data / "config.yaml").write_text(
        f"model_name_or_path: {model}\n"
        "output_dir: out\n"
        f"datasets:\n  - path: {data / 'prompts'}\n    columns: [prompt]\n"
        "use_peft: true\nlora_r: 2\nlora_target_modules: [q_proj, v_proj]\n"
        "reward_funcs: [own_rewards.digits]\nnum_generations: 2\nmax_completion_length: 8\n"
    )
    run(script("grpo"), "--config", "config.yaml", "--num_generations", "4")
    names = load_file(data / "out" / "adapter_model.safetensors")
    assert {name.split(".")[-3] for name in names} == {"q_proj", "v_proj"}
    assert "rewards/digits/mean" in log("out")[0]


@pytest.mark.parametrize("form", ["pairs", "shared"])
def test_sft(form, script, model, data):
    out = data / "out"
    run(
        script("sft"),
        *("--model_name_or_path", model, "--dataset_name", data / form, "--output_dir", out),
        *("--eval_strategy", "steps", "--eval_steps", "1", "--gradient_accumulation_steps", "2"),
    )
    assert [row["step"] for row in log(out) if "eval_loss" in row] == [1, 2]
    before, after = (load_file(path / "model.safetensors") for path in (model, out))
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_what_a_script_cannot_have_is_one_line(script, model, data):
    base = ("--model_name_or_path", model, "--dataset_name", data / "pairs")
    base = (*base, "--output_dir", data / "out")
    with pytest.raises(BadValue, match="load_in_4bit=True: quantised models are not supported"):
        run(script("sft"), *base, "--load_in_4bit")
    with pytest.raises(HubError, match="nothing was uploaded"):
        run(script("sft"), *base, "--push_to_hub")
