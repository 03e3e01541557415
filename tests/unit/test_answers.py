"""When an answer in words is right: a corpus with the verdict on each, and laws over its forms."""

import logging
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from math_verify import parse, verify

from eval.grading import extract, grade, grade_many
from eval.grading.notation import in_english
from eval.grading.words import in_digits

LINES = (Path(__file__).parent / "answers.txt").read_text(encoding="utf-8").splitlines()
TITLES = [line for line in LINES if line.startswith("## ")]


def cases(title: str) -> list[tuple[bool, str, str, str]]:
    """The cases below a title: is it right, language, reference answer, output."""
    rows, start = [], LINES.index(title) + 1
    for line in LINES[start:]:
        if line.startswith("## "):
            break
        verdict, language, gold, output = line.split(" | ", 3)
        assert verdict in ("right", "wrong"), line
        rows.append((verdict == "right", language, gold, output.replace("⏎", "\n")))
    return rows


def mistakes(rows: list[tuple[bool, str, str, str]]) -> list[str]:
    verdicts = grade_many([r[3] for r in rows], [r[2] for r in rows], [r[1] for r in rows])
    return [
        f"{language} {gold} {output!r}: read {verdict.extracted!r}"
        for (right, language, gold, output), verdict in zip(rows, verdicts, strict=True)
        if verdict.correct is not right
    ]


@pytest.mark.parametrize("title", TITLES)
def test_every_verdict_of_the_corpus(title: str):
    assert mistakes(cases(title)) == []


def test_at_most_a_third_of_the_errors_of_math_verify():
    rows = [row for title in TITLES for row in cases(title)]
    logging.disable(logging.WARNING)
    theirs = sum(
        bool(verify(parse(rf"\boxed{{{gold}}}"), parse(output))) is not right
        for right, _, gold, output in rows
    )
    logging.disable(logging.NOTSET)
    ours = len(mistakes(rows))
    print(f"{len(rows)} answers: {ours} errors, math-verify {theirs}")
    assert len(rows) >= 300
    assert sum(right for right, *_ in rows) * 3 > len(rows) > sum(r for r, *_ in rows) * 4 / 3
    assert ours * 3 <= theirs > 100


numbers = st.decimals(-(10**7), 10**7, places=2) | st.integers(-(10**7), 10**7)
SIGNS = {
    "de": ".,",
    "es": ".,",
    "fr": "\u202f,",
    "ru": "\u00a0,",
    "en": ",.",
    "ja": ",.",
    "sw": ",.",
}
SAYING = {
    "de": "Die Antwort lautet {}.",
    "es": "La respuesta es {}.",
    "fr": "La réponse est {}.",
    "ru": "Ответ — {}.",
    "en": "The answer is {}.",
    "ja": "答えは{}です。",
    "sw": "Jibu ni {}.",
}


@given(numbers, st.sampled_from(sorted(SIGNS)))
def test_a_number_is_read_by_the_rules_of_its_language(value, language: str):
    group, point = SIGNS[language]
    written = f"{value:,}".translate({ord(","): group, ord("."): point})
    for output in (SAYING[language].format(written), rf"\boxed{{{written}}}"):
        assert grade(output, str(value), language).correct is True
        assert grade(output, str(value + 1), language).correct is False


@given(numbers)
def test_english_numbers_stay_as_they_are(value):
    assert in_english(f"{value:,} and {value}", "en") == f"{value:,} and {value}"


@given(st.integers(0, 999), st.integers(2, 99), st.sampled_from(["eggs", "dollars", "books"]))
def test_a_sentence_says_its_only_number_or_what_was_computed_last(a: int, b: int, thing: str):
    total = f"{a} * {b} = {a * b}\n"
    for said in (
        f"Answer: Ann has {a * b} {thing} left.",
        f"{total}Answer: After {b + 1} days Ann has {a * b} {thing}.",
        f"Answer: Ann has {a} * {b} = {a * b} {thing}.",
        f"The answer is {a * b}, because {a} times {b} is that.",
        f"The answer is {a + 1}. No wait, it is {a * b}.",
        f"{total}Therefore, Ann has {a * b} {thing}.",
    ):
        assert grade(said, str(a * b)).correct is True, said
        assert grade(said, str(a * b + 1)).correct is False, said


@given(st.integers(0, 99), st.integers(100, 199))
def test_of_two_numbers_that_are_both_named_none_is_the_answer(a: int, b: int):
    for said in (f"{a} or {b}", f"{a} boys and {b} girls", f"neither {a} nor {b}"):
        assert extract(f"Answer: {said}").text != str(a)
        for gold in (a, b):
            assert grade(f"Answer: There are {said}.", str(gold)).correct is False


TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
ONES = "one two three four five six seven eight nine".split()  # noqa: SIM905


@pytest.mark.parametrize("ten", range(8))
def test_numbers_in_words_are_their_digits(ten: int):
    for one, word in enumerate(ONES, start=1):
        value = 10 * (ten + 2) + one
        small = f"{TENS[ten]}-{word}"
        assert in_digits(small) == in_digits(small.replace("-", " ")) == str(value)
        assert in_digits(f"{word} hundred and {small}") == str(100 * one + value)
        thousands = f"{small} thousand {word} hundred {small}"
        assert in_digits(thousands) == str(1000 * value + 100 * one + value)
        assert in_digits(f"minus {small}") == str(-value)
        assert in_digits(f"{small} and a half") == str(value + Fraction(1, 2))
        assert in_digits(f"{word} fifths") == str(Fraction(one, 5))


@pytest.mark.parametrize("text", ["someone", "often", "seventh", "stone", "tension"])
def test_other_words_stay(text: str):
    assert in_digits(text) == text


def test_each_title_has_cases_and_none_is_there_twice():
    rows = [row for title in TITLES for row in cases(title)]
    assert all(cases(title) for title in TITLES)
    twice = [k for k, g in groupby(sorted(row[1:] for row in rows)) if len(list(g)) > 1]
    assert twice == []
