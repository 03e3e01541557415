"""Controls of the pocket world: interventions do what they say; gains are split without rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.run.pocket_controls import Asked, Intervention, interventions
from eval.pocket.forms import form_of, split_gain
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark

OUTPUTS = ("1+1=2\nThe answer is \\boxed{2}.", "The answer is \\boxed{2}.", "```python\n```", "1")


def sample(number, output, *, correct):
    return Sample(
        benchmark="pocket-gsm8k",
        id=str(number),
        sample=0,
        output=output,
        tokens=1,
        truncated=False,
        extracted=None,
        correct=correct,
        rule="",
        reason="",
    )


ANSWERS = st.tuples(st.sampled_from(OUTPUTS), st.booleans())


@given(st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1, max_size=30))
def test_the_parts_of_a_gain_add_up_to_it(pairs):
    before, after = (
        [sample(n, pair[side][0], correct=pair[side][1]) for n, pair in enumerate(pairs)]
        for side in (0, 1)
    )
    found = split_gain(before, after)
    assert found.gain == pytest.approx(found.gain_changed + found.gain_unchanged)
    right = [sum(s.correct is True for s in side) for side in (before, after)]
    assert found.gain == pytest.approx(100 * (right[1] - right[0]) / len(pairs))
    same = [a[0][0] == a[1][0] for a in pairs]
    assert found.changed == pytest.approx(100 * (1 - sum(same) / len(pairs)))


def test_forms_are_lines_corrections_programs_and_boxes_and_no_numbers():
    assert len({form_of(output) for output in OUTPUTS}) == len(OUTPUTS)
    assert form_of("1+2=3\n3+4=7\n\\boxed{7}") == form_of("1-2=9\n9*4=8\n\\boxed{8}")
    assert form_of("1+2=4\nNo: 1+2=3\n\\boxed{3}") != form_of("1+2=4\n4-2=2\n\\boxed{2}")


@pytest.fixture(scope="module")
def asked():
    return Asked("pocket-base")


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


def test_every_kind_of_intervention_is_tried_once(asked, prompts):
    free = asked.answers(prompts, "en", Intervention())
    names = [how.name for how in interventions(asked, free)]
    assert len(set(names)) == len(names)
    for part in ("free", "longer", "begins", "does not begin", "program", "lines", "temperature"):
        assert any(part in name for name in names), part
