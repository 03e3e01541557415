"""Quantities of a student's tokens by its teacher, and their derivation from a stored file."""

import pytest
import torch

from core.distillation.teacher_quantities import (
    OWN,
    START,
    START_SAMPLES,
    TEACHER_QUANTITIES,
    Samples,
    answer_columns,
    teacher_quantity,
)
from core.families.distillation import Distillation
from core.forward.quantities import ratio_of_sums
from core.pages.probabilities import subject_and_notes
from core.records.pair_files import read_pairs, write_pairs
from core.stages.pair_quantities import derive
from eval.errors import BadValue

SAMPLES = Samples(
    prompts=[[5, 6], [7], [5, 6]],
    answers=[[8, 9, 10, 11], [12], [13, 14]],
    is_gone=[[False, False, True, True], [False], [False, True]],
    problems=[0, 0, 1],
)


@pytest.fixture
def sets(build_llama):
    student, teacher = build_llama(), build_llama(seed=1)
    columns = answer_columns(student, teacher, SAMPLES, 0)
    start = answer_columns(build_llama(seed=2), teacher, SAMPLES, 0)
    return {OWN: columns, START: start, START_SAMPLES: columns}


def values(sets, name, *, at_start=False):
    return teacher_quantity(name, sets, at_start=at_start).value


def by_hand(student, teacher):
    """Both divergences of each token, one answer at a time."""
    found = []
    for prompt, answer in zip(SAMPLES.prompts, SAMPLES.answers, strict=True):
        ids = torch.tensor([[*prompt, *answer]])
        with torch.no_grad():
            pair = [m(ids).logits[0, len(prompt) - 1 : -1] for m in (student, teacher)]
        p, q = (x.softmax(-1) for x in pair)
        found.append([(p * (p / q).log()).sum(-1), (q * (q / p).log()).sum(-1)])
    return found


def test_the_sums_are_those_of_one_answer_at_a_time(build_llama, sets):
    for row, (reverse, forward) in enumerate(by_hand(build_llama(), build_llama(seed=1))):
        middle, gone = -(-len(reverse) // 2), torch.tensor(SAMPLES.is_gone[row])
        expected = {
            "tokens": len(reverse),
            "first_tokens": middle,
            "gone_tokens": gone.sum().item(),
            "reverse_kl": reverse.sum().item(),
            "reverse_kl_first": reverse[:middle].sum().item(),
            "reverse_kl_gone": reverse[gone].sum().item(),
            "forward_kl": forward.sum().item(),
        }
        assert {name: sets[OWN][name][row] for name in expected} == pytest.approx(
            expected, rel=1e-4
        )


def test_a_student_like_its_teacher_has_no_divergence(build_llama):
    columns = answer_columns(build_llama(), build_llama(), SAMPLES, 0)
    assert values({OWN: columns}, "kl_to_teacher") == pytest.approx(0, abs=1e-6)


def test_quantities_are_means_over_their_tokens(build_llama, sets):
    pairs = by_hand(build_llama(), build_llama(seed=1))
    reverse, forward = (torch.cat([pair[i] for pair in pairs]) for i in (0, 1))
    kinds = {
        "kl_to_teacher": [0, 1, 2, 3, 4, 5, 6],
        "kl_to_teacher/first_half": [0, 1, 4, 5],
        "kl_to_teacher/second_half": [2, 3, 6],
        "kl_to_teacher/gone": [2, 3, 6],
        "kl_to_teacher/right": [0, 1, 4, 5],
    }
    for name, places in kinds.items():
        assert values(sets, name) == pytest.approx(reverse[places].mean().item(), rel=1e-4)
    assert values(sets, "forward_kl_to_teacher") == pytest.approx(forward.mean().item(), rel=1e-4)
    assert values(sets, "share_gone") == pytest.approx(3 / 7)


def test_answers_to_one_problem_are_one_draw_of_an_interval(sets):
    found = teacher_quantity("kl_to_teacher", sets, at_start=False)
    sums, tokens = (torch.tensor(sets[OWN][name]) for name in ("reverse_kl", "tokens"))
    problems = [[0, 1], [2]]
    above, below = ([[x[row] for row in rows] for rows in problems] for x in (sums, tokens))
    expected = ratio_of_sums(*([torch.tensor(part) for part in x] for x in (above, below)))
    assert found.n == 2
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-5)


def test_the_start_has_its_own_samples(sets):
    for name in TEACHER_QUANTITIES:
        if name != "share_gone":
            assert values(sets, name, at_start=True) != values(sets, name)
    other = {**sets, OWN: sets[START]}
    assert values(other, "kl_to_teacher") == values(sets, "kl_to_teacher", at_start=True)
    assert values(other, "kl_to_teacher/gone") == values(sets, "kl_to_teacher/gone")


def test_a_file_gives_every_quantity_again(sets, tmp_path):
    write_pairs(tmp_path / "tokens.parquet", sets)
    read = read_pairs(tmp_path / "tokens.parquet")
    for at_start in (False, True):
        again, before = (derive(x, TEACHER_QUANTITIES, at_start=at_start) for x in (read, sets))
        for name in TEACHER_QUANTITIES:
            assert again[name] == pytest.approx(before[name])


def test_no_token_behind_a_wrong_prefix_is_one_line(sets):
    right = {**sets[OWN], "gone_tokens": [0] * 3, "reverse_kl_gone": [0.0] * 3}
    with pytest.raises(BadValue, match="none of 3 samples has such a token"):
        values({**sets, START_SAMPLES: right}, "kl_to_teacher/gone")


def test_the_family_names_every_quantity():
    assert {*Distillation.teacher_quantities} == {*TEACHER_QUANTITIES}


def test_the_note_of_a_table_explains_every_quantity():
    subject, (note,) = subject_and_notes([*TEACHER_QUANTITIES])
    assert "beside the teacher" in subject
    names = {part for name in TEACHER_QUANTITIES for part in name.split("/")}
    assert {name for name in names if name not in note} == set()
