"""Stories to order: each parameter of a world does what its name says."""

from dataclasses import replace

import pytest

from eval.errors import BadValue, UnknownName
from eval.pocket.solver import STRATEGIES
from eval.pocket.stories import Difficulty
from eval.pocket.suites import owning_split
from eval.pocket.world import World, generate_cases

N = 40
PLAIN = World()


def test_cases_have_forms_of_their_own_of_training_splits_and_are_the_same_twice():
    found = list(generate_cases(PLAIN, N))
    forms = [case.draft.form for case in found]
    assert len(set(forms)) == N
    assert all(owning_split(form).endswith("train") for form in forms)
    assert [case.solution for case in generate_cases(PLAIN, N)] == [case.solution for case in found]
    assert [case.draft.form for case in generate_cases(PLAIN, N, seed=1)] != forms


@pytest.mark.parametrize("events", [(1, 1), (3, 4), (8, 10)])
def test_a_story_has_as_many_lines_as_events(events):
    short = Difficulty(events=events)
    levels = {case.draft.level for case in generate_cases(World(difficulty=short), 20)}
    assert levels <= set(range(events[0], events[1] + 1))


@pytest.mark.parametrize("chance", [(0.0, 0.1), (0.3, 0.6), (0.8, 1.0)])
def test_problems_are_as_hard_as_ordered(chance):
    world = replace(PLAIN, chance=chance)
    found = list(generate_cases(world, N))
    assert all(chance[0] <= case.chance <= chance[1] for case in found)
    right = sum(case.solution.answer == case.draft.answer for case in found) / N
    assert chance[0] - 0.15 <= right <= chance[1] + 0.15


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_so_many_stated_answers_are_wrong(noise):
    found = list(generate_cases(replace(PLAIN, noise=noise), 2 * N))
    wrong = sum(case.stated_answer != case.draft.answer for case in found) / (2 * N)
    assert wrong == pytest.approx(noise, abs=0.13)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_distractors_stand_in_as_many_stories(share):
    world = World(difficulty=Difficulty(distractors=share))
    lured = [any(s.distractor for s in case.draft.plan.steps) for case in generate_cases(world, N)]
    assert sum(lured) == share * N


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_line_has_a_label_and_only_the_right_ones_are_right(strategy):
    for case in generate_cases(replace(PLAIN, strategy=strategy), N):
        assert len(case.labels) == len(case.solution.lines)
        if (
            all(case.labels)
            and strategy in ("short", "plain")
            and len(case.labels) == case.draft.level
        ):
            assert case.solution.answer == case.draft.answer


def test_what_cannot_be_is_refused():
    with pytest.raises(UnknownName, match="strategy"):
        World(strategy="carefully")
    with pytest.raises(BadValue, match="chance"):
        World(chance=(0.5, 0.2))
    with pytest.raises(BadValue, match="noise=2"):
        World(noise=2)
