"""Controls of the pocket world: interventions do what they say, and their record is held."""

import pytest

from core.run.pocket_controls import AskedPolicy, Intervention, interventions, restore_division
from eval.sets.benchmarks import find_benchmark


@pytest.fixture(scope="module")
def asked():
    return AskedPolicy("pocket-base")


@pytest.fixture(scope="module")
def prompts():
    benchmark = find_benchmark("pocket-math")
    return [benchmark.prompt(p) for p in benchmark.load(split="valid")[:12]]


def test_answers_begin_as_they_are_told_to(asked, prompts):
    how = Intervention(start="7+")
    assert all(text.startswith("7+") for text in asked.answers(prompts, "en", how))


def test_no_answer_begins_with_what_is_forbidden(asked, prompts):
    free = asked.answers(prompts, "en", Intervention())
    first = asked.tokenizer(free[0], add_special_tokens=False)["input_ids"][0]
    other = asked.answers(prompts, "en", Intervention(forbidden=first))
    begin = asked.tokenizer.decode([first])
    assert not any(text.startswith(begin) for text in other)
    kept = [(a, b) for a, b in zip(free, other, strict=True) if not a.startswith(begin)]
    assert all(a == b for a, b in kept)


def test_answers_have_as_many_lines_as_are_asked_for(asked, prompts):
    texts = asked.answers(prompts, "en", Intervention(lines=4))
    free = asked.answers(prompts, "en", Intervention())
    assert all(text.split("The answer")[0].count("\n") >= 4 for text in texts)
    assert min(text.count("\n") for text in free) < 4


def test_a_last_division_is_left_out_and_nothing_else():
    told = "13*6=78\n4*7=28\n78/28=19/7\nThe answer is \\boxed{\\frac{19}{7}}."
    left = "13*6=78\n4*7=28\nThe answer is \\boxed{\\frac{78}{28}}."
    assert restore_division(told, "en") == left
    assert restore_division(left, "en") == left
    inner = "12/2=6\n6+1=7\nThe answer is \\boxed{7}."
    assert restore_division(inner, "en") == inner
    assert (
        restore_division("12/2=5\n答案是\\boxed{5}。", "zh") == "\n答案是\\boxed{\\frac{12}{2}}。"
    )


def test_every_kind_of_intervention_is_tried_once(asked, prompts):
    free = asked.answers(prompts, "en", Intervention())
    names = [how.name for how in interventions(asked, free)]
    assert len(set(names)) == len(names)
    for part in (
        "free",
        "longer",
        "begins",
        "does not begin",
        "program",
        "lines",
        "division",
        "temperature",
    ):
        assert any(part in name for name in names), part
