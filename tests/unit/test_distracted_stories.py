"""Stories with 0 to 5 distractors: equal but for these, of forms that no training split has."""

import itertools

import pytest

from eval.errors import BadValue
from eval.pocket.distracted import MOST, SIZE, distracted_problems, stories
from eval.pocket.phrases import PHRASES
from eval.pocket.stories import KINDS
from eval.pocket.suites import owning_split
from eval.sets.benchmarks import find_benchmark


def sentences(question: str) -> list[str]:
    return question.replace("？", "。").split("。")[:-1]


def test_versions_of_a_story_are_equal_but_for_one_more_sentence():
    versions = [distracted_problems(count, "test", 0) for count in range(MOST + 1)]
    for rows in zip(*versions, strict=True):
        assert len({(row.answer, row.solution, row.level) for row in rows}) == 1
        for shorter, longer in itertools.pairwise(rows):
            less, more = sentences(shorter.question), sentences(longer.question)
            assert len(more) == len(less) + 1
            kept = iter(more)
            assert all(sentence in kept for sentence in less)  # in order
            assert more[-1] == less[-1]  # the question itself comes last
    assert KINDS == MOST == len(PHRASES["zh"].distractors) == 5


def test_forms_are_those_of_the_test_set_alone_and_draws_differ():
    forms = {draw: [made.draft(0).form for made in stories(draw)] for draw in (0, 1)}
    for draw, found in forms.items():
        assert len(set(found)) == len(found) == SIZE
        assert {owning_split(form) for form in found} == {f"pocket-cmath test {draw}"}
    assert not set(forms[0]) & set(forms[1])


def test_benchmarks_have_the_draw_and_the_number_of_distractors():
    for count in (0, 5):
        benchmark = find_benchmark(f"pocket-distractors-{count}", 1)
        assert benchmark.load() == distracted_problems(count, "test", 1)
        assert benchmark.draw_of(1) == 1


@pytest.mark.parametrize(
    ("count", "split", "draw"), [(6, "test", 0), (1, "train", 0), (1, "test", 10)]
)
def test_what_does_not_exist_is_refused(count, split, draw):
    with pytest.raises(BadValue, match="expected test, a draw of 0 to 9, and 0 to 5 distractors"):
        distracted_problems(count, split, draw)
