"""Nano tasks: splits share no question, a seed is a world, any right answer is accepted."""

import re
from collections import Counter
from itertools import combinations
from math import isclose
from statistics import median

import pytest
from datasets import Dataset

from core.data.preparation import tokenize_rows
from core.data.sets import find_set
from core.models.nano import nano_tokenizer
from core.rewards import Accuracy
from eval.grading import grade
from eval.nano.choice import LETTERS, WRONG, law, letters_of
from eval.nano.grammar import law as grammar_law
from eval.nano.hinted_sums import HINT, HintedSums
from eval.nano.ledgers import entries
from eval.nano.splits import (
    SIZES,
    TASKS,
    demonstrations,
    held_out_answers,
    nano_problems,
    owning_split,
)
from eval.nano.sums import NOISE
from eval.nano.task import ALPHABET
from eval.sets.benchmarks import find_benchmark

KINDS = [(name, kind) for name, task in TASKS.items() for kind in task.demonstrations]


def asked(name, prompt):
    """The question of a prompt, behind a hint in the tasks that have them."""
    return prompt.rpartition(HINT)[2] if isinstance(TASKS[name], HintedSums) else prompt


@pytest.mark.parametrize("name", TASKS)
def test_splits_share_no_question_and_are_drawn_by_the_seed(name):
    sizes = {**SIZES, "test": find_benchmark(name).n}
    splits = {
        split: {asked(name, p.question) for p in nano_problems(name, split, 20)} for split in sizes
    }
    assert {split: len(questions) for split, questions in splits.items()} == sizes
    assert not any(splits[a] & splits[b] for a, b in combinations(splits, 2))
    for kind in TASKS[name].demonstrations:
        shown = {asked(name, prompt) for prompt, _ in demonstrations(name, kind, 20)}
        assert {owning_split(question) for question in shown} == {"train"}
    assert nano_problems(name, "test", 20) != nano_problems(name, "test", 21)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_texts_are_of_the_alphabet_and_within_the_limit(name, kind):
    for question, answer in demonstrations(name, kind, 20):
        assert not {*question, *answer} - {*ALPHABET}
    for answer in held_out_answers(name, kind, 20):
        assert len(answer) < TASKS[name].max_tokens  # and the end token


def test_every_seed_has_a_law_with_these_shares_of_wrong_digits():
    assert law(20) != law(21)
    wrong = [1 - sum(row.shares[:2]) for row in law(20).values()]
    assert sorted(law(20)) == sorted(LETTERS)
    assert [sum(low <= w <= high for w in wrong) for _, (low, high) in WRONG] == [33, 11, 4]
    assert all(isclose(sum(row.shares), 1) and len({*row.digits}) == 4 for row in law(20).values())


def test_demonstrations_follow_the_law():
    shown = [(q[0], a[0]) for q, a in demonstrations("nano-choice", "demonstrations", 20)]
    letters, pairs = Counter(letter for letter, _ in shown), Counter(shown)
    gaps = [
        pairs[letter, digit] / letters[letter] - share
        for letter, row in law(20).items()
        for digit, share in zip(row.digits, row.shares, strict=True)
    ]
    assert sum(
        pairs[letter, digit] for letter in letters for digit in law(20)[letter].digits
    ) == len(shown)
    assert max(map(abs, gaps)) < 0.13  # 5.8 standard errors of a share of 333
    assert abs(sum(gaps)) < 1e-9


@pytest.mark.parametrize(
    ("name", "question", "right", "wrong"),
    [
        (
            "nano-many",
            "kQ12=",
            ["0+12", "7+5", "12+0"],
            ["7+6", "5", "12", "7+5+0", " 7+5", "07+5"],
        ),
        ("nano-length", "kQ2=", ["99.", "1909-3.", "999."], ["9.", "99", "99.9", "9.9", ""]),
        ("nano-ledgers", "a37g82.g=82a=", ["37", "37g"], ["82", "73", "3", "37g=", ""]),
        ("nano-chains", "kQ3+8+5=", ["6", "1-6", "9-6"], ["5", "6-1", "16", "1-", "1+6", ""]),
        ("nano-chains", "kQ3+8+5+=", ["6", "1-6"], ["1", "1-5", ""]),
        (
            "nano-digits",
            "31415929=",
            ["34894354", "00000004"],
            ["34894350", "4", "348943544", "a4894354", ""],
        ),
        (
            "nano-chain",
            "384152907316=",
            ["315613229239"],
            ["325613229239", "31561322923", "3156132292390", "9", ""],
        ),
    ],
)
def test_any_right_answer_counts_and_no_other(name, question, right, wrong):
    pattern = TASKS[name].right_answers(question, 0)
    assert all(re.fullmatch(pattern, answer) for answer in right)
    assert not any(re.fullmatch(pattern, answer) for answer in wrong)


def test_a_right_digit_of_each_letter_is_right_in_its_own_seed():
    problem = next(p for p in find_benchmark("nano-choice", 20).load() if p.level == 3)
    rows = [law(20)[letter] for letter in letters_of(problem.question)]
    right = "".join(row.digits[1] for row in rows)
    verdict = grade(right, problem.reference)
    assert (verdict.correct, verdict.rule, verdict.reason) == (True, "whole output", "matches")
    assert grade(right[:2] + rows[2].digits[2], problem.reference).correct is False
    assert grade(right + "0", problem.reference).correct is False
    assert grade(
        f"\\boxed{{{right}}}", problem.reference
    ).correct  # as samples without texts have it


def test_the_reward_judges_as_the_suite_does():
    row = find_set("nano-many").for_seed(20).source.rows("nano-many", "train", None)[0]
    total = int(row["question"][2:-1])
    values = Accuracy()(
        completions=[f"{total}+0", f"{total}+1", f"\\boxed{{{total}+0}}"],
        answer=[row["answer"]] * 3,
        answers=[row["answers"]] * 3,
    )
    assert values == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_rows_of_a_data_set_belong_to_the_seed(name, kind):
    data_set = find_set(f"{name}-{kind}")
    first, other = (data_set.for_seed(seed) for seed in (20, 21))
    rows = first.source.rows(first.name, "train", None)
    assert len(rows) == data_set.n
    assert rows != other.source.rows(other.name, "train", None)
    assert first.source.version("") != other.source.version("")
    held_out = first.source.rows(first.name, "valid", None)
    assert [row["question"] for row in held_out] == [
        p.question for p in nano_problems(name, "valid", 20)
    ]
    [messages] = {len(row["completion"]) for row in held_out}
    assert messages == 1
    assert "completion" not in first.source.rows(first.name, "test", None)[0]


def test_held_out_rows_have_the_tokens_of_the_trained_ones():
    source, tokenizer = find_set("nano-sums-demonstrations").for_seed(20).source, nano_tokenizer()
    answers = held_out_answers("nano-sums", "demonstrations", 20)
    rows = source.rows("", "valid", None)
    texts = [
        {"prompt": row["question"], "completion": answer}
        for row, answer in zip(rows, answers, strict=True)
    ]
    encoded, expected = (
        tokenize_rows(Dataset.from_list(each), tokenizer).select_columns(["input_ids", "labels"])
        for each in (rows[:40], texts[:40])
    )
    assert encoded.to_list() == expected.to_list()
    assert source.rows("", "train", None)[0].keys() == texts[0].keys()


def test_pocket_problems_are_those_of_every_seed():
    pocket = find_set("pocket")
    assert pocket.for_seed(7) == pocket


def test_a_fifth_of_the_demonstrated_sums_are_wrong_where_they_are_held_out_too():
    problems, task = nano_problems("nano-sums", "valid", 20), TASKS["nano-sums"]
    answers = held_out_answers(task.name, "demonstrations", 20)
    held_out = [(p.question, answer) for p, answer in zip(problems, answers, strict=True)]
    for pairs in (demonstrations(task.name, "demonstrations", 20), held_out):
        wrong = sum(not re.fullmatch(task.right_answers(q, 20), a) for q, a in pairs)
        assert abs(wrong / len(pairs) - NOISE) <= 5 * (NOISE * (1 - NOISE) / len(pairs)) ** 0.5


def test_a_string_of_the_grammar_is_right_in_its_own_seed_unless_a_lock_is_wrong():
    pattern, words = TASKS["nano-grammar"].right_answers("", 20), grammar_law(20)
    first, second, third = (place[-1].text for place in words)
    assert re.fullmatch(pattern, first + second + third)
    for wrong in (second + first + third, first + second, first + second + third[:-1] + "."):
        assert not re.fullmatch(pattern, wrong)
    assert not re.fullmatch(TASKS["nano-grammar"].right_answers("", 21), first + second + third)


def test_demonstrated_strings_have_words_by_their_shares_and_each_lock_as_often_wrong():
    shown = [answer for _, answer in demonstrations("nano-grammar", "demonstrations", 20)]
    wrong = Counter[int]()
    for place, words in enumerate(grammar_law(20)):
        parts = [answer[5 * place : 5 * place + 5] for answer in shown]
        forks = Counter(part[0] for part in parts)
        assert [word.text[0] for word in words] == [fork for fork, _ in forks.most_common()]
        assert forks[words[0].text[0]] / len(shown) == pytest.approx(1 / 2.45, abs=0.02)
        by_fork = {word.text[0]: word for word in words}
        for part in parts:
            word = by_fork[part[0]]
            for lock in range(4):
                if part[1 + lock] != word.text[1 + lock]:
                    assert part[1 + lock] in word.slips[lock]
                    wrong[4 * place + lock] += 1
    assert len(wrong) == 12
    assert all(0.01 < count / len(shown) < 0.02 for count in wrong.values())  # 5 errors of 0.015


def test_a_ledger_answers_all_its_questions_within_64_tokens_and_a_document_goes_on():
    held_out = held_out_answers("nano-ledgers", "documents", 20)
    for problem, answer in zip(nano_problems("nano-ledgers", "valid", 20), held_out, strict=True):
        assert len(problem.question + answer) <= 64
        assert problem.question.count(problem.question[-2]) == 2  # in the head and at the end
    rest_lengths = []
    for question, rest in demonstrations("nano-ledgers", "documents", 20):
        numbers = entries(question)
        assert 2 <= len(numbers) <= 5
        text = question.partition(".")[2] + rest
        told = re.findall("([a-zA-Z])=(..)", text)
        assert text == "".join(f"{name}={numbers[name]}" for name, _ in told)
        rest_lengths.append(len(rest))
    assert median(rest_lengths) in (10, 14)
    assert max(rest_lengths) > 64 > 2 == min(rest_lengths)


@pytest.mark.parametrize("kind", TASKS["nano-chains"].demonstrations)
def test_a_chain_is_right_by_its_last_number_in_either_form(kind):
    problems = nano_problems("nano-chains", "valid", 20)
    answers = held_out_answers("nano-chains", kind, 20)
    assert all(grade(a, p.reference).correct for p, a in zip(problems, answers, strict=True))
    steps = [answer.count("-") for answer in answers]
    by_form = {level: {n for p, n in zip(problems, steps, strict=True) if p.level == level}
               for level in (1, 2)}  # fmt: skip
    expected = {"answers": ({0}, {0}), "solutions": ({1}, {1}), "both": ({0}, {1})}
    assert (by_form[1], by_form[2]) == expected[kind]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_demonstrations_hold_out_the_problems_of_their_benchmark(name, kind):
    """Arms that learn from them and from rewards are compared on the same problems."""
    plain, shown = (
        [row["prompt"] for row in data.source.rows(data.name, "valid", None)]
        for data in (find_set(of).for_seed(20) for of in (name, f"{name}-{kind}"))
    )
    assert shown == plain
