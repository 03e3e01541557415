"""Running sums of a fallible solver: where it errs, and which prefixes have gone wrong."""

from collections import Counter
from string import digits

import pytest

from eval.errors import BadValue
from eval.nano.fallible_sums import ERRING, EVEN, MOST, ODD, SLIP, error_table, next_sum
from eval.nano.running_sums import right_prefixes, running_sums
from eval.nano.splits import (
    TASKS,
    demonstrations,
    gone_prefixes,
    held_out_answers,
    nano_problems,
)

WRONG_SUMS = {"nano-chain": digits, "nano-chain-even": ODD}


@pytest.mark.parametrize("wrong_sums", WRONG_SUMS.values())
def test_a_table_errs_in_a_quarter_of_the_cells_of_all_kinds_and_belongs_to_the_seed(wrong_sums):
    table = error_table(20, wrong_sums)
    assert table != error_table(21, wrong_sums)
    kinds = Counter((total in EVEN, digit in EVEN) for total, digit in table)
    assert sorted(kinds.values()) == [6, 6, 6, 7]
    assert all(wrong in wrong_sums and wrong != next_sum(cell) for cell, wrong in table.items())


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [*((name, "fallible", ERRING) for name in WRONG_SUMS), ("nano-chain", "failing", MOST)],
)
def test_an_answer_goes_wrong_at_its_first_error_and_goes_on_from_there(name, kind, count):
    table, visits = error_table(20, WRONG_SUMS[name], count), Counter[bool]()
    assert len(table) == count
    for question, answer in demonstrations(name, kind, 20):
        cells = [*zip("0" + answer, question[:-1], strict=False)]
        errs = [total != next_sum(cell) for total, cell in zip(answer, cells, strict=True)]
        for cell, total, error in zip(cells, answer, errs, strict=True):
            assert total == (table[cell] if error else next_sum(cell))
            if cell in table:
                visits[error] += 1
        first = errs.index(True) if True in errs else len(answer)
        expected = [place <= first for place in range(len(answer) + 1)]
        assert [*right_prefixes(question, answer)] == expected
        assert (answer == running_sums(question)) == (True not in errs)
    share = visits[True] / visits.total()
    assert abs(share - SLIP) < 5 * (SLIP * (1 - SLIP) / visits.total()) ** 0.5


def test_a_prefix_of_even_digits_has_gone_wrong_where_its_last_sum_is_odd():
    for kind in ("demonstrations", "fallible"):
        for question, answer in demonstrations("nano-chain-even", kind, 20):
            assert {*question[:-1]} <= {*EVEN}
            wrong = [not right for right in right_prefixes(question, answer)[1:]]
            assert wrong == [total in ODD for total in answer]
            assert kind == "fallible" or not any(wrong)


@pytest.mark.parametrize("name", WRONG_SUMS)
def test_true_sums_are_demonstrated_to_held_out_problems_which_no_demonstration_has(name):
    problems = nano_problems(name, "valid", 20)
    for problem, answer in zip(problems, held_out_answers(name, "demonstrations", 20), strict=True):
        assert answer == running_sums(problem.question) == problem.answer
        assert problem.level == 1
    held_out = {p.question for split in ("valid", "test") for p in nano_problems(name, split, 20)}
    for kind in TASKS[name].demonstrations:
        assert not held_out & {question for question, _ in demonstrations(name, kind, 20)}


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        ("", [True]),
        ("31", [True] * 3),
        ("3156132292390", [True] * 13 + [False]),
        ("325613229239", [True] * 2 + [False] * 11),  # the last sums are right again
    ],
)
def test_the_first_wrong_step_has_a_right_prefix(solution, expected):
    assert [*right_prefixes("384152907316=", solution)] == expected


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("nano-chain", "419918196283=", "454340109423"),
        ("nano-chain-even", "460622262464=", "400680280175"),
    ],
)
def test_demonstrations_stay_as_they_are(name, question, answer):
    assert demonstrations(name, "fallible", 100)[0] == (question, answer)


def test_a_question_of_another_kind_has_no_sums_and_no_prefix_of_it_goes_wrong():
    for question in ("What is 1 + 1?", "12", "=", "1\u0662=", "12=\n"):
        with pytest.raises(BadValue, match=r"question .*: expected digits and '='"):
            running_sums(question)
        assert gone_prefixes("nano-chain-even", question, "12", 3) == [False] * 3
    assert gone_prefixes("nano-chain-even", "24=", "25", 3) == [False, False, True]
