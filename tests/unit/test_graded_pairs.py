"""Pairs of the task `digits`: their order is known, and splits and seeds share no question."""

from statistics import mean

import pytest

from core.data.pair_columns import GRADE, MARGIN
from core.data.sets import find_set
from eval.nano.graded_pairs import (
    DIGITS,
    GRADES,
    OF_A_QUESTION,
    WRONG,
    held_out_pairs,
    training_pairs,
)
from eval.nano.splits import owning_split
from eval.nano.task import ALPHABET


def mistakes(pair, answer):
    """The number of digits of an answer that are not the successor of the question's."""
    return sum((int(a) - int(q)) % 10 != 1 for q, a in zip(pair.question, answer, strict=False))


@pytest.mark.parametrize("pairs", [training_pairs(2400, 20), held_out_pairs(601, 20)])
def test_a_rejected_answer_has_as_many_more_mistakes_as_its_grade_says(pairs):
    for pair in pairs:
        assert mistakes(pair, pair.rejected) - mistakes(pair, pair.chosen) == pair.grade
        assert {len(pair.chosen), len(pair.rejected), len(pair.question) - 1} == {DIGITS}
        assert not {*pair.question, *pair.chosen, *pair.rejected} - {*ALPHABET}
    counts = [sum(pair.grade == grade for pair in pairs) for grade in GRADES]
    assert max(counts) - min(counts) <= 1
    share = mean(mistakes(pair, pair.chosen) for pair in pairs) / DIGITS
    assert abs(share - WRONG) < 0.02  # 3.6 standard errors for 601 pairs


def test_a_question_belongs_to_one_split_and_has_several_training_pairs():
    train, held_out = training_pairs(800, 20), held_out_pairs(100, 20)
    assert {owning_split(pair.question) for pair in train} == {"train"}
    assert {owning_split(pair.question) for pair in held_out} == {"valid"}
    assert len({pair.question for pair in train}) == 800 / OF_A_QUESTION


def test_pairs_are_drawn_by_the_seed_but_for_the_first_one_held_out():
    assert training_pairs(9, 20) == training_pairs(9, 20)
    assert not {*training_pairs(90, 20)} & {*training_pairs(90, 21)}
    one, other = held_out_pairs(90, 20), held_out_pairs(90, 21)
    assert one[0] == other[0]
    assert not {*one[1:]} & {*other[1:]}


def test_data_sets_of_pairs_differ_by_their_margins_alone():
    def rows(name, split):
        return find_set(name).for_seed(20).source.rows(name, split, None)

    for split in ("train", "valid"):
        plain = rows("nano-digits-pairs", split)
        for ending, largest in (("small", 1.0), ("large", 3.0)):
            margins = rows(f"nano-digits-pairs-{ending}", split)
            assert [row[MARGIN] for row in margins] == pytest.approx(
                [largest * row[GRADE] / 3 for row in plain]
            )
            assert [{k: v for k, v in row.items() if k != MARGIN} for row in margins] == plain
