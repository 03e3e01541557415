"""What a page says of a claim names what was measured."""

import pytest

from core.pages.verdicts import as_measured, claim_result, measured_suites

SUITES = {"gsm8k": "pocket-gsm8k", "math": "pocket-math", "mgsm_zh": "pocket-mgsm-zh"}
ROWS = [{"mirrors": name, "benchmark": suite} for name, suite in SUITES.items()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("top1(gsm8k, math) of grpo", "top1(pocket-gsm8k, pocket-math) of grpo"),
        ("top1(mgsm_zh) of math > 0.5", "top1(pocket-mgsm-zh) of math > 0.5"),
        ("top1(math500, pocket-math) of x", "top1(math500, pocket-math) of x"),
        ("maj@8(math, level=5) - k(kl)", "maj@8(pocket-math, level=5) - k(kl)"),
        ("late(held_out/accuracy) of gsm8k", "late(held_out/accuracy) of gsm8k"),
    ],
)
def test_a_suite_has_its_own_name_between_brackets_and_nothing_else_changes(text, said):
    assert as_measured(text, SUITES) == said
    assert as_measured(said, SUITES) == said
    assert as_measured(text, {}) == text


def test_a_claim_is_shown_with_the_suites_of_its_runs():
    runs = [{"scores": ROWS[:2], "start_scores": ROWS[2:]}]
    side = {"measure": "top1(gsm8k)", "arm": "grpo", "values": []}
    verdict = {
        "id": "better",
        "statement": "It is better on math.",
        "left": side,
        "right": {**side, "arm": "start"},
        "relation": ">",
        "verdict": "undecided",
        "effect": 1.0,
        "low": None,
        "high": None,
        "p": None,
        "reason": "top1(math) of grpo stands at 99 %",
        "seeds": [0],
        "runs": ["x"],
    }
    shown = claim_result(verdict, suites=measured_suites(runs))
    assert shown.compare == "top1(pocket-gsm8k) of grpo > top1(pocket-gsm8k) of start"
    assert "top1(pocket-math) of grpo" in shown.detail
    assert shown.statement == "It is better on math."
