"""What a user gets wrong ends with one line that says what was expected, and exit code 2."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from transformers import Qwen2Config, Qwen2ForCausalLM

from core.records.record_text import parse_record

PAPER = "deepseekmath-grpo"
SUITE = "pocket-gsm8k"
HERE = Path(__file__).parents[2]
SCORE = ("score", "@strange", "--benchmark", SUITE)
EVAL = ("eval", "pocket-instruct", "--benchmarks", SUITE)


@pytest.fixture
def places(root):
    """Files and folders that are not what is asked for, by name."""
    folder = root / "folder"
    folder.mkdir()
    trained = root / "trained"
    (trained / "model").mkdir(parents=True)
    (trained / "model" / "config.json").write_text("{}")
    files = {
        "empty": b"",
        "bad": b"not JSON\n",
        "binary": b"\xff\xfe",
        "strange": b'{"id": "of no problem", "output": "1"}\n',
    }
    for name, content in files.items():
        (root / f"{name}.jsonl").write_bytes(content)
    return {name: root / f"{name}.jsonl" for name in files} | {
        "folder": folder,
        "trained": trained,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--family", "grop"), "no family 'grop': did you mean grpo"),
        (("plan", PAPER, "model="), "model is empty"),
        (("plan", PAPER, "benchmarks=3"), "benchmarks=3: expected tuple[str, ...], got int"),
        (("plan", PAPER, "twins={1: 2}"), "twins={1: 2}: expected Mapping[str, str]"),
        (("plan", PAPER, "learning_rate=fast"), "learning_rate=fast: expected float, got str"),
        (("plan", PAPER, "--gpus", "8"), "--gpus 8: expected a number and a kind"),
        (("plan", PAPER, "--at", "gpus"), "no scale 'gpus': did you mean gpu"),
        (("plan", PAPER, "--launch", "ddp"), "launch=ddp, processes=1: several processes need"),
        (("run", PAPER, "model=@folder"), "holds no model: expected config.json"),
        (("run", PAPER, "model=@empty"), "no folder @empty: give a folder"),
        (("run", PAPER, "--seed", str(2**32)), "is not in the range 0<=x<=4294967295"),
        (("run", PAPER, "--job", "x"), "--job x: expected name=value"),
        (("run", PAPER, "report_to=clearml"), "the package clearml is not installed"),
        (("diff", PAPER, "nope"), "no paper 'nope'"),
        (("score", "/nowhere", "--benchmark", SUITE), "/nowhere"),
        (("score", "@folder", "--benchmark", SUITE), "@folder"),
        (("score", "@empty", "--benchmark", SUITE), "@empty holds no outputs"),
        (("score", "@bad", "--benchmark", SUITE), "@bad, line 1"),
        (("score", "@binary", "--benchmark", SUITE), "@binary"),
        (SCORE, "of no problem"),
        (("score", "@strange", "--benchmark", "gsm9k"), "no benchmark 'gsm9k': did you mean"),
        ((*SCORE, "--mode", "tri"), "no mode 'tri': did you mean tir"),
        ((*SCORE, "--per-sample", "@strange"), "would be overwritten"),
        (("table", "samples", "@folder"), "@folder: no graded samples"),
        (("table", "deepseekmath-pocket"), "no runs of standard settings"),
        (("bench", "rolout"), "no benchmark 'rolout': did you mean rollout"),
        (("doctor", "--verifier", "gsm9k"), "no benchmark 'gsm9k'"),
        (("new", "a-paper", "--arxiv", "2501.01234", "--folder", "@empty"), "@empty"),
        ((*EVAL, "--temperature", "nan"), "temperature=nan"),
        ((*EVAL, "--samples", "2", "--temperature", "0"), "are one sample repeated"),
        ((*EVAL, "--out", "@empty"), "@empty"),
        (("eval", "@folder", "--benchmarks", SUITE), "holds no model: expected config.json"),
        (("eval", "@trained", "--benchmarks", SUITE), "@trained/model holds one"),
        (("eval", "--benchmarks", SUITE, "--power", "--rate", "nan"), "rate=nan"),
        (("eval", "--benchmarks", SUITE, "--power", "--seed-spread", "nan"), "seed_spread=nan"),
        (("eval", "--benchmarks", SUITE, "--contamination", "@folder"), "@folder"),
        (("eval", "--benchmarks", SUITE, "--contamination", "@empty"), "@empty holds no rows"),
        (("lsit",), "No such command 'lsit'"),
        (("list", "--jsn"), "No such option: --jsn"),
    ],
)
def test_a_mistake_is_one_line(repro, places, arguments, message):
    result = repro(*(filled(argument, places) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert filled(message, places) in result.stderr.splitlines()[-1]
    assert not result.stdout


def filled(text, places):
    """A text with the paths of the places that it names with an @."""
    return re.sub(r"@(\w+)", lambda found: str(places[found[1]]), text)


def test_the_version_is_that_of_the_distribution(repro):
    written = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["version"]
    result = repro("--version")
    assert (result.exit_code, result.stdout) == (0, f"repro {written}\n")


@pytest.mark.parametrize(
    "command",
    [("run", "dappo"), ("plan", "dappo"), ("show", "dappo"), (*EVAL[:3], "gsm9k")],
    ids=" ".join,
)
def test_a_misspelt_name_waits_for_nothing_slow(command):
    call = "from core.cli.main import app; sys.argv[1:] = {!r}; code = None\n"
    body = "try: app()\nexcept SystemExit as end: code = end.code\n"
    seen = "print(code, [m for m in ('torch', 'transformers', 'datasets') if m in sys.modules])"
    script = f"import sys; {call.format([*command])}{body}{seen}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "2 []\n", done.stdout + done.stderr
    assert "did you mean" in done.stderr


@pytest.mark.long
@pytest.mark.skipif("REPRO_DATA" not in os.environ, reason="REPRO_DATA is not set: no real data")
def test_at_gpu_a_tiny_qwen2_on_a_cpu_ends_with_a_table(repro, root, tmp_path, tiny_tokenizer):
    """What a GPU is for is only faster there: the settings, data and pages are the same."""
    sizes = {"vocab_size": len(tiny_tokenizer), "hidden_size": 32, "intermediate_size": 64}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    ends = {name: getattr(tiny_tokenizer, name) for name in ("pad_token_id", "eos_token_id")}
    tiny_model = tmp_path / "qwen2"
    Qwen2ForCausalLM(Qwen2Config(**sizes, **heads, **ends)).save_pretrained(tiny_model)
    tiny_tokenizer.save_pretrained(tiny_model)
    tiny = ("num_generations=4", "per_device_train_batch_size=8", "gradient_accumulation_steps=1")
    few = ("steps_per_generation=1", "max_steps=2", "max_completion_length=12", "eval_limit=2")
    less = ("at_k_samples=4", "at_k_limit=2", "heldout_problems=4", "use_cpu=true")
    short = ("eval_max_tokens=64",)
    result = repro("run", PAPER, "--at", "gpu", f"model={tiny_model}", *tiny, *few, *less, *short)
    assert result.exit_code in (0, 1), result.output
    assert "(gpu scale, greedy, top1)" in result.stdout
    assert "Tool-integrated reasoning" in result.stdout
    head = next(line for line in result.stdout.splitlines() if line.startswith("| Model"))
    assert [name.strip() for name in head.split("|")[3:-1]] == ["GSM8K", "MATH", "MGSM-zh", "CMATH"]
    records = [parse_record(path.read_text()) for path in root.glob(f"runs/results/{PAPER}/*.json")]
    (record,) = [one for one in records if one["kind"] == "run"]
    assert [step for step, _ in record["curves"]["held_out/accuracy"]] == [0, 2]
    assert {row["computed"] for row in record["scores"]} == {"bfloat16 on cpu"}
    assert {row["mode"] for row in record["scores"]} == {"cot", "tir"}
