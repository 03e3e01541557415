"""Configs without torch have the fields and the effect of those that are imported with it."""

import json
import os
import subprocess
import sys

import pytest

from core.families.declarations import PLAIN
from core.families.profiles import SCALES
from core.families.table import ROWS, find_family
from core.paper.overrides import field_types
from core.paper.registry import entries, find_paper
from core.stages.kernels import conditions, read_kernels

pytestmark = pytest.mark.versions
DECLARED = """
import json, sys
from core.families.declarations import declare_configs
from tests.unit.test_declarations import declared
declare_configs()
fields = declared()
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
LATER = """
from core.families.table import find_family
try:
    find_family("grpo").config_class()(output_dir="x")
except RuntimeError as error:
    print(error)
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from core.losses.masked import masked_mean
print(masked_mean(torch.tensor([[1.0, 3.0]]), torch.tensor([[1.0, 0.0]])).item())
sizes = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
print(LlamaForCausalLM(LlamaConfig(vocab_size=9, **sizes)).lm_head.weight.shape[0])
"""
EFFECTIVE = """
print(json.dumps(effective_settings()))
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
COMMAND = """
import sys
from core.cli.main import app
try:
    app(sys.argv[1:])
finally:
    print(sorted({"torch", "transformers", "peft", "accelerate"} & sys.modules.keys()))
"""
LIGHT = "[]"  # what such a command prints at its end
# A value of each field of `PLAIN` that the command line can set, unlike that of a pocket run.
ALTERED = (
    *(
        "adam_beta1=0.8",
        "adam_beta2=0.9",
        "adam_epsilon=1e-6",
        "weight_decay=0.1",
        "optim=adamw_torch",
    ),
    *("optim_args=x=1", "learning_rate=1e-3", "lr_scheduler_type=cosine_with_min_lr"),
    *(
        "lr_scheduler_kwargs={'min_lr': 1e-5}",
        "warmup_steps=0.1",
        "max_grad_norm=0.5",
        "max_steps=-1",
    ),
    *("num_train_epochs=2", "label_smoothing_factor=0.1", "per_device_train_batch_size=64"),
    *("gradient_accumulation_steps=2", "bf16=false", "fp16=true", "use_cpu=false"),
    *("activation_checkpointing=true", "gradient_checkpointing=true", "logging_steps=5"),
    *("logging_strategy=epoch", "save_steps=5", "save_strategy=epoch", "save_total_limit=3"),
    *("data_seed=1", "dataloader_num_workers=1", "remove_unused_columns=true"),
)


def declared():
    """The type and the default of every field of every family's config, as text.

    The type of `parallelism_config` is a class of accelerate, which no setting gives.
    """
    from core.settings.differences import defaults  # imports configs

    return {
        family.name: {
            name: (str(field_types(config).get(name)), repr(default.value))
            for name, default in defaults(config, "").items()
            if name != "parallelism_config"
        }
        for family in ROWS
        for config in [family.config_class()]
    }


def effective_settings():
    """The effective settings and the cost of every arm at cpu, and of main arms at each scale."""
    from core.settings.effective import effective  # imports configs
    from core.settings.resolve import resolve

    papers = [entry.load() for entry in entries().values()]
    pairs = [(paper, paper.main_arm, scale) for paper in papers for scale in SCALES]
    pairs += [(paper, arm, "cpu") for paper in papers for arm in (*paper.arms, *paper.preparations)]
    runs = [resolve(paper, arm=a, scale=s) for paper, a, s in pairs if paper.exists_at(a, s)]
    names = field_types(find_family("grpo").config_class())  # the oldest transformers has fewer
    altered = [text for text in ALTERED if text.partition("=")[0] in names]
    runs.append(resolve(find_paper("dapo"), arguments=altered))
    return [[effective(run), str(run.family.cost(run.preview()))] for run in runs]


def run(code, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr


def command(root, *arguments):
    """The output of a command, and the modules of torch that it loaded."""
    variables = {"REPRO_ROOT": str(root), "XDG_CACHE_HOME": str(root / "cache")}
    code, out, errors = run(COMMAND, *arguments, **variables)
    assert code == 0, errors
    text, _, loaded = out.rstrip("\n").rpartition("\n")
    return text, loaded


def test_the_declared_fields_are_those_of_the_configs():
    code, out, errors = run(f"{DECLARED}\nprint(json.dumps(fields))")
    assert code == 0, errors
    assert json.loads(out) == json.loads(json.dumps(declared()))


@pytest.mark.long
def test_torch_and_transformers_are_whole_when_they_are_imported_later():
    code, out, errors = run(f"{DECLARED}\n{LATER}")
    assert code == 0, errors
    assert out.splitlines() == [
        "GRPOConfig: only its declaration is loaded, without torch",
        "1.0",
        "9",
    ]


@pytest.mark.long
def test_effective_settings_without_torch_are_those_with_it():
    code, out, errors = run(
        DECLARED.replace("import declared", "import effective_settings").replace(
            "fields = declared()", ""
        )
        + EFFECTIVE
    )
    assert code == 0, errors
    assert json.loads(out) == json.loads(json.dumps(effective_settings()))
    assert {text.partition("=")[0] for text in ALTERED} == PLAIN - {"seed"}


@pytest.mark.parametrize(
    ("fields", "variables"), [({"tf32"}, {}), ({"beta"}, {"LOCAL_RANK": "0"})], ids=str
)
def test_nothing_is_declared_where_the_effect_of_a_field_needs_torch(fields, variables):
    code, out, errors = run(
        "from core.families.declarations import declare_configs; import sys\n"
        f"print(declare_configs({fields}), 'core.configs.base' in sys.modules)",
        **variables,
    )
    assert (code, out) == (0, "False False\n"), errors


def test_two_papers_are_compared_without_torch(tmp_path):
    out, loaded = command(tmp_path, "diff", "dapo", "dr-grpo", "--json")
    assert loaded == LIGHT
    rows = {row["field"]: row for row in json.loads(out)}
    assert (rows["epsilon_high"]["left"]["value"], rows["epsilon_high"]["right"]["value"]) == (
        0.28,
        None,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("list",),
        ("show", "dapo"),
        ("runs",),
        ("diff", "dapo", "trl"),
        ("plan", "dapo", "learning_rate=1e-5", "--at", "gpu", "--json"),
    ],
    ids=" ".join,
)
def test_a_light_command_loads_no_torch(arguments, tmp_path):
    _, loaded = command(tmp_path, *arguments)
    assert loaded == LIGHT


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("plan", "ppo"), ("check", "ppo")], ids=" ".join)
def test_a_command_that_loaded_torch_once_here_loads_none_again(arguments, tmp_path):
    """A plan for the CPU measures its kernels, and a check imports the functions of laws."""
    first, second = (command(tmp_path, *arguments) for _ in range(2))
    assert "torch" in first[1]
    assert second == (first[0], LIGHT)


def test_a_damaged_file_of_kernels_is_measured_again(tmp_path):
    path = tmp_path / "kernels"
    assert read_kernels(path) is None
    path.write_text('{"torch": "AVX2"')
    assert read_kernels(path) is None
    path.write_text('{"torch": "AVX2"}')
    assert read_kernels(path) is None
    path.write_text('{"torch": "AVX2", "mkl": "AVX2", "rounding": "0"}')
    assert read_kernels(path) == {"torch": "AVX2", "mkl": "AVX2", "rounding": "0"}


@pytest.mark.parametrize("name", ["ATEN_CPU_CAPABILITY", "MKL_CBWR", "DNNL_MAX_CPU_ISA"])
def test_kernels_are_measured_again_in_another_environment(name, monkeypatch):
    before = conditions()
    monkeypatch.setenv(name, "other")
    assert conditions() != before
