"""Configs declared without torch have the fields of those that are imported with it."""

import json
import subprocess
import sys

from core.families.table import ROWS
from core.paper.overrides import field_types

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
COMMAND = """
import sys
from core.cli.main import app
try:
    app(["diff", "dapo", "dr-grpo", "--json"])
finally:
    print(sorted({"torch", "transformers", "peft"} & sys.modules.keys()), file=sys.stderr)
"""


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


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_declared_fields_are_those_of_the_configs():
    code, out, errors = run(f"{DECLARED}\nprint(json.dumps(fields))")
    assert code == 0, errors
    assert json.loads(out) == json.loads(json.dumps(declared()))


def test_torch_and_transformers_are_whole_when_they_are_imported_later():
    code, out, errors = run(f"{DECLARED}\n{LATER}")
    assert code == 0, errors
    assert out.splitlines() == [
        "GRPOConfig: only its declaration is loaded, without torch",
        "1.0",
        "9",
    ]


def test_two_papers_are_compared_without_torch():
    code, out, errors = run(COMMAND)
    assert (code, errors) == (0, "[]\n")
    rows = {row["field"]: row for row in json.loads(out)}
    assert (rows["epsilon_high"]["left"]["value"], rows["epsilon_high"]["right"]["value"]) == (
        0.28,
        None,
    )
