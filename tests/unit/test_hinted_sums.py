"""Running sums with hints: what hints say, what starts are taught, the new skill, and feedback."""

import re
from collections import Counter
from hashlib import sha256
from itertools import combinations
from random import Random
from string import digits

import pytest

from core.rewards import FirstWrongStep
from eval.nano.fallible_sums import LENGTH, MOST, SLIP, changed_cells
from eval.nano.hinted_sums import (
    CHANGED,
    ERRING,
    HINT,
    HINTED,
    MARKS,
    MORE,
    NEW,
    PREFIX,
    SKILLS,
    STYLE,
    fallible_cells,
    parts_of,
    skill_cells,
    solution,
)
from eval.nano.running_sums import running_sums
from eval.nano.splits import demonstrations, nano_problems

QUESTION, SUMS = "384152907316=", "315613229239"
DATA_WITH_ONE_NEW_SKILL = "20cb0fc6ce39b1840f8d6eba1f225e4b018c8edfa0b92a6bae7da0fe3dd58a6b"
KINDS = ("demonstrations", "experts", "own", "ignored")
MIXED = (f"{PREFIX}-mixed", f"{NEW}-mixed", f"{NEW}s-mixed")


def shares_of(prompts):
    """Return how many of the prompts have a hint of each length."""
    return Counter(len(parts_of(prompt)[0]) for prompt in prompts)


@pytest.mark.parametrize(
    ("name", "hint_of"),
    [
        (PREFIX, lambda _: ""),
        (f"{PREFIX}-half", lambda right: right[: LENGTH // 2]),
        (f"{PREFIX}-whole", lambda right: right),
        *((f"{skill}-whole", lambda right: right) for skill in SKILLS),
    ],
)
def test_a_hint_says_what_its_name_says_and_the_answer_is_that_of_the_question(name, hint_of):
    for problem in nano_problems(name, "test", 20):
        hint, mark, added = parts_of(problem.question)
        right = solution(problem.question, 20)
        assert hint == hint_of(right)
        assert mark == SKILLS.get(name.removesuffix("-whole"), "")
        assert (right == running_sums(added + "=")) or mark
        assert re.fullmatch(problem.answer, right)
        assert re.fullmatch(problem.answer, STYLE + right)
        assert problem.question.startswith(STYLE) == name.startswith(NEW)
        assert not re.fullmatch(problem.answer, right[:-1])
        assert not re.fullmatch(problem.answer, "0" + right)


def test_the_hint_of_another_question_is_its_solution_and_no_part_of_this_one():
    problems = nano_problems(f"{PREFIX}-other", "test", 20)
    hints = [parts_of(problem.question)[0] for problem in problems]
    assert {*map(len, hints)} == {LENGTH}
    first_right = sum(
        hint[0] == problem.question[-LENGTH - 1]
        for hint, problem in zip(hints, problems, strict=True)
    )
    assert first_right / len(hints) == pytest.approx(0.1, abs=0.07)  # 5 standard errors
    assert not any(
        hint == solution(problem.question, 20)
        for hint, problem in zip(hints, problems, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "kind", "erring"),
    [
        (MIXED[0], "demonstrations", ERRING),
        (MIXED[0], "erring", MORE),
        (MIXED[0], "erring-often", MOST),
        *((name, "demonstrations", 0) for name in MIXED[1:]),
    ],
)
def test_a_start_copies_hints_and_goes_on_behind_them(name, kind, erring):
    table = fallible_cells(20, erring)
    assert len(table) == erring
    lengths, errors, visits = Counter[int](), 0, 0
    for prompt, answer in demonstrations(name, kind, 20):
        hint, _, added = parts_of(prompt)
        lengths[len(hint)] += 1
        assert answer.startswith(hint)
        for place in range(len(hint), LENGTH):
            cell = (answer[place - 1] if place else "0", added[place])
            true = str(sum(map(int, cell)) % 10)
            assert answer[place] in {true, table.get(cell, true)}
            visits += cell in table
            errors += answer[place] != true
    end = 1 / 4 if name == MIXED[0] else 1 / 3
    expected = {0: end, LENGTH: end, **dict.fromkeys(range(1, LENGTH), (1 - 2 * end) / 11)}
    for length, share in expected.items():
        spread = (share * (1 - share) / lengths.total()) ** 0.5
        assert abs(lengths[length] / lengths.total() - share) < 5 * spread
    if table:
        assert abs(errors / visits - SLIP) < 5 * (SLIP * (1 - SLIP) / visits) ** 0.5


@pytest.mark.parametrize(("name", "marks"), [(f"{NEW}-mixed", MARKS[0]), (f"{NEW}s-mixed", MARKS)])
def test_hints_of_a_start_teach_no_new_skill(name, marks):
    """A changed cell of a skill is as often right in them as in a hint that knows no skill."""
    agreeing, visits = 0, 0
    for prompt, _ in demonstrations(name, "demonstrations", 20):
        hint, _, added = parts_of(prompt)
        for cell, total in zip(zip("0" + hint, added, strict=False), hint, strict=False):
            for changed in (skill_cells(20, mark) for mark in marks):
                visits += cell in changed
                agreeing += total == changed.get(cell)
    assert agreeing / visits < 0.03  # CHANGED of 100 cells, each with one of 9 other sums


def test_a_start_that_ignores_hints_gives_true_sums_even_under_the_mark():
    marks = Counter[str]()
    for prompt, answer in demonstrations(f"{NEW}-mixed", "ignored", 20):
        _, mark, added = parts_of(prompt)
        assert answer == running_sums(added + "=")
        marks[mark] += 1
    assert 0.48 < marks[MARKS[0]] / marks.total() < 0.52


@pytest.mark.parametrize(("name", "mark"), SKILLS.items())
def test_a_new_skill_belongs_to_the_seed_and_differs_in_its_cells_alone(name, mark):
    assert len(skill_cells(20, mark)) == CHANGED
    assert skill_cells(20, mark) != skill_cells(21, mark)
    changed = 0
    for prompt, answer in demonstrations(name, "own", 20):
        assert prompt[0] == mark
        for cell, total in zip(zip("0" + answer, prompt[1:], strict=False), answer, strict=False):
            true = str(sum(map(int, cell)) % 10)
            assert (total != true) == (cell in skill_cells(20, mark))
            changed += total != true
    assert changed


def test_new_skills_are_drawn_apart():
    """As many changed cells are shared as by chance: 2.25 of two skills in the mean."""
    shared = [
        len(skill_cells(seed, a).keys() & skill_cells(seed, b).keys())
        for seed in range(200)
        for a, b in combinations(MARKS, 2)
    ]
    assert sum(shared) / len(shared) == pytest.approx(CHANGED**2 / 100, abs=0.3)


def test_the_first_new_skill_is_drawn_by_the_seed_alone():
    """Other marks change nothing of the suites with one new skill or none."""
    assert skill_cells(20) == skill_cells(20, MARKS[0])
    assert skill_cells(20) == changed_cells(Random("skill 20"), digits, CHANGED)
    alone = [task for task in HINTED if {*"".join(task.marks)} <= {MARKS[0]}]
    assert [task.name.removeprefix(PREFIX) for task in alone] == [
        *("", "-half", "-whole", "-other", "-mixed", "-style", "-style-whole", "-style-mixed")
    ]
    data = [
        [[nano_problems(task.name, split, 20) for split in ("train", "valid", "test")]]
        + [[*demonstrations(task.name, kind, 20)] for kind in KINDS if kind in task.demonstrations]
        for task in alone
    ]
    assert sha256(repr(data).encode()).hexdigest() == DATA_WITH_ONE_NEW_SKILL


@pytest.mark.parametrize("name", SKILLS)
def test_experts_open_right_answers_with_their_sign(name):
    for prompt, answer in demonstrations(name, "experts", 20):
        assert answer == STYLE + solution(prompt, 20)
    own = demonstrations(name, "own", 20)
    assert all(answer == solution(prompt, 20) for prompt, answer in own)


def test_templates_of_a_teacher_write_the_prompts_of_the_task():
    """Both kinds of settings put what a teacher is shown before the prompt."""
    shown = "{privileged_context}" + HINT + "{prompt}"
    assert parts_of(shown.format(privileged_context=SUMS, prompt=QUESTION)) == (
        SUMS,
        "",
        QUESTION[:-1],
    )
    expert = shown.format(privileged_context=STYLE + SUMS, prompt=MARKS[0] + QUESTION)
    assert parts_of(expert) == (SUMS, MARKS[0], QUESTION[:-1])
    problem = nano_problems(f"{PREFIX}-whole", "test", 20)[0].question
    hint, _, question = problem.rpartition(HINT)
    assert shown.format(privileged_context=hint, prompt=question) == problem


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (SUMS, None),
        ("325613229239", "31"),
        ("", "3"),
        ("3156", "31561"),
        (SUMS + "9", SUMS),
        (SUMS[:-1] + "0", SUMS),
        ("." + SUMS, "3"),
    ],
)
def test_feedback_goes_through_the_first_wrong_step(attempt, expected):
    message = [{"role": "user", "content": QUESTION}]
    answer = [{"role": "assistant", "content": attempt}]
    told = FirstWrongStep().feedback(
        prompts=[QUESTION, message], completions=[attempt, answer], answer=["", ""]
    )
    assert told == [expected, expected]


def test_feedback_is_given_exactly_where_the_reward_is_0():
    judged = Counter[float]()
    for prompt, answer in demonstrations(f"{PREFIX}-mixed", "demonstrations", 20)[:600]:
        question = prompt.rpartition(HINT)[2]
        right = running_sums(question)
        [reward] = FirstWrongStep()(
            completions=[answer], answer=[right], answers=[{"counts": "whole", "texts": [right]}]
        )
        [told] = FirstWrongStep().feedback(prompts=[question], completions=[answer])
        assert (told is None) == (reward == 1)
        assert told is None or (right.startswith(told) and not answer.startswith(told))
        judged[reward] += 1
    assert min(judged[0.0], judged[1.0]) > 60
