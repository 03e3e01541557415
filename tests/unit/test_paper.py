"""A paper's data: cited settings, printed numbers, and the first paper's table."""

import subprocess
import sys

import pytest

from core.claims import START, MissingMeasure, gain, gain_at_k, late, score
from core.laws.kl_variance import variance
from core.paper import cite, marked, printed
from papers.deepseekmath_grpo import PAPER

HEAVY = ("pydantic", "torch", "transformers", "pandas", "matplotlib", "scipy", "rich", "sympy")


def test_cite_gives_every_setting_its_passage():
    settings = cite("s4.2", beta=0.04, num_generations=64)
    assert [(s.name, s.value, s.passage) for s in settings] == [
        ("beta", 0.04, "s4.2"),
        ("num_generations", 64, "s4.2"),
    ]


def test_printed_skips_empty_cells_and_keeps_marks_and_sizes():
    numbers = printed(
        "table 5",
        ["gsm8k", "math"],
        "top1",
        {"GPT-4": [marked("maj@32", 92.0), None], ("Qwen", "72B"): [78.9, 35.2]},
    )
    assert [(n.system, n.size, n.benchmark, n.metric, n.value) for n in numbers] == [
        ("GPT-4", None, "gsm8k", "maj@32", 92.0),
        ("Qwen", "72B", "gsm8k", "top1", 78.9),
        ("Qwen", "72B", "math", "top1", 35.2),
    ]
    assert {n.passage for n in numbers} == {"table 5"}


def test_printed_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match="GPT-4 has 1 cells, not 2"):
        printed("table 5", ["gsm8k", "math"], "top1", {"GPT-4": [92.0]})


def test_deepseekmath_has_every_number_of_its_card():
    table = [n for n in PAPER.reported if n.block != "text"]
    assert len(PAPER.reported) == 74
    assert len({(n.system, n.size, n.block) for n in table}) == 26
    assert {(n.system, n.benchmark) for n in table if n.metric == "maj@32"} == {
        ("Gemini Ultra", "gsm8k"),
        ("Gemini Pro", "gsm8k"),
    }
    ours = {
        (n.system, n.block): n.value
        for n in table
        if n.system.startswith("DeepSeekMath") and n.benchmark == "math"
    }
    assert ours == {
        ("DeepSeekMath-Instruct", "cot"): 46.8,
        ("DeepSeekMath-RL", "cot"): 51.7,
        ("DeepSeekMath-Instruct", "tool"): 57.4,
        ("DeepSeekMath-RL", "tool"): 58.8,
    }
    assert all(n.passage and 0 < n.value <= 100 for n in PAPER.reported)


def test_claims_name_arms_that_exist():
    named = {arm for claim in PAPER.claims for arm in claim.arms}
    assert named - {START} <= set(PAPER.arms)
    assert len(PAPER.claims) == len({claim.slug for claim in PAPER.claims}) == 8


def test_importing_papers_and_the_command_line_loads_nothing_heavy():
    code = (
        "import sys, core.paper, core.paper.registry, core.rewards, core.cli.main;"
        "from core.paper.registry import find_paper; find_paper('deepseekmath-grpo');"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def score_row(mirrors, value):
    return {"mirrors": mirrors, "metric": "top1", "value": value}


RECORD = {
    "digest": "abc",
    "start_scores": [score_row("gsm8k", 40.0), score_row("math", 20.0)],
    "scores": [score_row("gsm8k", 60.0), score_row("math", 30.0)],
    "curves": {"held_out/accuracy": [[0, 10], [3, 40], [6, 60], [7, 61], [9, 65]]},
    "sampling": {
        "pocket-gsm8k": {
            "mirrors": "gsm8k",
            "before": {"maj": [1, 40.0], "pass": [1, 90.0]},
            "after": {"maj": [1, 55.0], "pass": [1, 91.0]},
        }
    },
}


def test_measures_read_what_they_name():
    assert score("gsm8k", "math").read(RECORD, "grpo") == 45.0
    assert score("gsm8k", "math").read(RECORD, START) == 30.0
    assert late("held_out/accuracy").read(RECORD, "grpo") == pytest.approx(63.0)
    assert gain("held_out/accuracy", 0.0, 0.5).read(RECORD, "grpo") in (30.0, 50.0)
    assert gain("held_out/accuracy", 0.0, 1.0).read(RECORD, "grpo") == 55.0
    assert gain_at_k("maj", "gsm8k").read(RECORD, "grpo") == 15.0
    assert gain_at_k("pass", "gsm8k").read(RECORD, "grpo") == 1.0


@pytest.mark.parametrize(
    "measure", [score("cmath"), late("kl"), gain("kl", 0, 1), gain_at_k("maj", "math")]
)
def test_a_measure_says_what_a_record_lacks(measure):
    with pytest.raises(MissingMeasure, match=r"record abc .*has no"):
        measure.read(RECORD, "grpo")


def test_k3_varies_less_than_k1_and_an_unsound_estimator_is_infinite():
    k3, k1 = variance("k3", sound=True), variance("k1")
    assert all(0 < a < b for a, b in zip(k3, k1, strict=True))
    assert all(value == float("inf") for value in variance("k1", sound=True))
    # By hand: p = (.5, .3, .2), r = (.48, .31, .21): k1 = log(p / r), KL = 0.000832...
    assert k1[0] == pytest.approx(0.0016312, rel=1e-4)
