"""Our benchmarks through lm-eval's runner and ours; `repro eval --lm-eval` and its record."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from lm_eval import simple_evaluate

from core.evaluate.model_scores import load_sampler
from core.lm_eval.model import ReproLM
from core.lm_eval.scores import OURS, find_tasks
from core.records.record import read_records
from eval.errors import BadValue
from eval.samples.evaluation import Decoding, run_benchmark
from eval.sets.benchmarks import BENCHMARKS, find_benchmark

FILES = sorted(Path(OURS).glob("*.yaml"))
POCKET = ("pocket-gsm8k", "pocket-math", "pocket-mgsm-zh", "pocket-cmath")
LOCAL = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}, cache_dir: {cache}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
"""


def test_every_benchmark_has_a_task():
    assert [file.stem for file in FILES] == sorted(
        name.replace("-", "_") for name in BENCHMARKS if not name.startswith("nano-")
    )  # the law of a nano task is drawn for each seed


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_task_asks_the_benchmark_of_its_name(file):
    class Loader(yaml.SafeLoader):
        """Leaves `!function` alone."""

    Loader.add_constructor("!function", lambda _, node: node.value)
    row = yaml.load(file.read_text(), Loader)
    name = row["dataset_kwargs"]["benchmark"]
    assert row["task"] == f"repro_{file.stem}"
    assert file.stem == name.replace("-", "_")
    common = yaml.load((file.parent / row["include"]).read_text(), Loader)
    assert common["generation_kwargs"]["max_gen_toks"] == find_benchmark(name).max_tokens


def test_both_runners_give_the_same_outputs_and_the_same_score():
    """Same prompts, greedy, 40 problems of each suite; lm-eval computes its own mean."""
    names = [f"repro_{name.replace('-', '_')}" for name in POCKET]
    results = simple_evaluate(
        model=ReproLM("pocket-instruct"),
        tasks=names,
        task_manager=find_tasks(names),
        limit=40,
        apply_chat_template=True,
    )
    sampler = load_sampler("pocket-instruct")
    for task, name in zip(names, POCKET, strict=True):
        ours = run_benchmark(
            sampler, find_benchmark(name), limit=40, decoding=Decoding(max_tokens=200)
        )
        theirs = results["samples"][task]
        prompts = [
            sampler.encode(BENCHMARKS[name].prompt(p)) for p in BENCHMARKS[name].load(limit=40)
        ]
        asked = [row["arguments"][0][0] for row in theirs]
        encode = sampler.tokenizer
        assert [encode(a, add_special_tokens=False)["input_ids"] for a in asked] == prompts
        assert [row["doc"]["id"] for row in theirs] == [sample.id for sample in ours]
        assert [row["resps"][0][0] for row in theirs] == [sample.output for sample in ours]
        right = sum(sample.correct is True for sample in ours)
        assert results["results"][task]["acc,none"] == pytest.approx(right / 40)


REFUSAL = "repro_pocket_math: its prompts are turns of a chat: add --apply_chat_template"


def test_a_prompt_without_the_chat_template_is_refused_not_scored_zero():
    task = "repro_pocket_math"
    with pytest.raises(BadValue, match=REFUSAL):
        simple_evaluate(
            model=ReproLM("pocket-instruct"), tasks=[task], task_manager=find_tasks([task]), limit=1
        )


def test_a_tokenizer_without_a_chat_template_is_refused(repro, tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "plain")
    (tmp_path / "plain" / "chat_template.jinja").unlink()
    result = repro("eval", tmp_path / "plain", "--lm-eval", "repro_pocket_math", "--limit", 1)
    assert result.exit_code == 2
    assert REFUSAL in result.stderr.splitlines()[-1]


@pytest.mark.long
def test_our_command_line_of_lm_eval_refuses_it_in_one_line():
    options = ("--model", "repro", "--model_args", "pretrained=pocket-instruct", "--limit", "1")
    done = subprocess.run(
        [sys.executable, "-m", "core.lm_eval", "run", *options, "--tasks", "repro_pocket_math"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"BadValue: {REFUSAL}")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_tasks_are_scored_printed_and_kept_once(repro):
    command = ("eval", "pocket-instruct", "--lm-eval", "repro_pocket_math", "--limit", 8, "--json")
    first, second = repro(*command), repro(*command)
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)
    assert [row["metric"] for row in rows] == ["acc", "unanswered", "undecided"]
    assert all(row["n"] == 8 and row["limited"] for row in rows)
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert json.loads(second.stdout) == rows
    (record,) = read_records("lm-eval")
    assert record["scores"] == rows
    assert record["config"]["tasks"] == ["repro_pocket_math"]
    assert "model.safetensors" in record["model"]["files"]


@pytest.mark.parametrize(
    ("kind", "metric"), [("generate_until", "exact_match"), ("loglikelihood", "perplexity")]
)
def test_a_task_file_of_the_users_runs(repro, tiny_model, tmp_path, kind, metric):
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(f'{{"question": "{i}+1=", "answer": "{i + 1}"}}\n' for i in range(5)))
    file = tmp_path / "sums.yaml"
    file.write_text(LOCAL.format(data=data, cache=tmp_path / "cache", kind=kind))
    result = repro("eval", tiny_model, "--lm-eval", file)
    assert result.exit_code == 0, result.output
    found = {line.split()[1]: line.split() for line in result.stdout.splitlines()[1:]}
    assert found[metric][0] == "sums"
    assert float(found[metric][3]) >= 0
    assert "5" in found[metric]


def test_what_cannot_be_run_is_one_line(repro, tiny_model):
    for options, message in (
        (("--lm-eval", "hendrycks_math50"), "did you mean hendrycks_math500"),
        (("--lm-eval", "hendrycks_math500"), "MissingFile: lm-eval cannot load hendrycks_math500"),
        (("--lm-eval", "minerva_math_algebra"), "antlr4-python3-runtime==4.11"),
        (("--lm-eval", ","), "expected different names"),
        (("--lm-eval", "repro_cmath", "--samples", 4), "not with --lm-eval"),
        ((), "expected one of --benchmarks NAMES and --lm-eval TASKS"),
        (("--lm-eval", "repro_cmath", "--benchmarks", "cmath"), "expected one of"),
    ):
        result = repro("eval", tiny_model, *options)
        assert result.exit_code == 2, result.output
        assert message in result.stderr.splitlines()[-1]
    assert read_records("lm-eval") == []
