"""A benchmark that asks and judges in its own way: a file of problems and a page of data."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.sources import problem_rows
from core.rewards import Accuracy
from core.rewards.verifiers import problem_of
from core.stages.sources import source_of
from eval.errors import BadValue, UnknownName
from eval.grading import grade
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.side_by_side import judge_both
from eval.sets.benchmarks import Benchmark
from eval.sets.problem import Answers

LETTER = r"(?i)answer is \(?([A-D])\b"
CHOICE = Answers(("B",), pattern=LETTER, verbatim=True)
PROBLEMS = [
    {"id": "a", "question": "Which is even? (A) 1 (B) 2", "answer": "B", "language": "en"},
    {"id": "b", "question": "Which is odd? (A) 1 (B) 2", "answer": "A", "language": "en"},
]


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(p) + "\n" for p in PROBLEMS))
    return Benchmark(
        name="choices",
        title="Choices",
        n=2,
        folder=tmp_path,
        frame="{}\nSay: the answer is (LETTER).",
        pattern=LETTER,
        verbatim=True,
    )


def test_it_is_asked_and_judged_as_it_says(suite):
    asked = []

    def sampler(prompts, decoding):
        assert decoding.chat
        asked.extend(prompts)
        return [[Completion("The answer is (A)? No, the answer is (b).", 9, truncated=False)]] * 2

    found = run_benchmark(sampler, suite, decoding=Decoding(max_tokens=9))
    assert asked[0] == "Which is even? (A) 1 (B) 2\nSay: the answer is (LETTER)."
    assert [(s.correct, s.extracted, s.rule) for s in found] == [
        (True, "b", "pattern"),
        (False, "b", "pattern"),
    ]
    both = judge_both(found, suite.load(), suite, "cot")
    assert not any(judged.differ for judged in both)


@pytest.mark.parametrize(
    ("output", "correct", "reason"),
    [
        ("The answer is C. The answer is B", True, "same text"),
        ("The answer is C", False, "other text"),
        (r"\boxed{B}", False, "no answer"),
        ("", False, "no answer"),
    ],
)
def test_the_last_match_of_a_pattern_is_the_answer(output, correct, reason):
    found = grade(output, CHOICE)
    assert (found.correct, found.reason) == (correct, reason)


def test_a_pattern_alone_is_compared_as_mathematics():
    half = Answers(("1/2",), pattern=r"FINAL: .*")
    assert grade("FINAL: 0.5", replace(half, pattern=r"FINAL: (.*)")).reason == "equal numbers"
    assert grade("FINAL: 0.5", half).extracted == "FINAL: 0.5"
    assert grade("FINAL: 1/2", replace(half, pattern=r"FINAL: (.*)", verbatim=True)).correct
    assert not grade("FINAL: 0.5", replace(half, pattern=r"FINAL: (.*)", verbatim=True)).correct


@given(st.text(), st.text(min_size=1))
def test_verbatim_answers_are_those_of_the_same_letters(given_text, answer):
    asked = Answers((answer,), pattern=r"(?s)\A=(.*)", verbatim=True)
    same = given_text.strip().casefold() == answer.strip().casefold()
    assert grade(f"={given_text}", asked).correct is bool(given_text and same)


def test_a_pattern_that_takes_forever_has_no_verdict():
    slow = Answers(("a",), pattern=r"(a|aa)+$")
    found = grade("a" * 80 + "b", slow)
    assert (found.correct, found.rule) == (None, "timeout")


def test_how_it_judges_is_part_of_every_key(suite, monkeypatch):
    ways = [suite, replace(suite, pattern="x"), replace(suite, frame="{}!")]
    found = []
    for way in ways:
        monkeypatch.setattr("core.stages.sources.find_benchmark", lambda _, way=way: way)
        found.append(json.dumps(source_of("choices")))
    assert len(set(found)) == 3


def test_what_is_no_benchmark_is_refused(suite):
    with pytest.raises(BadValue, match=r"choices: frame='Say': expected one \{\} in it"):
        replace(suite, frame="Say")
    with pytest.raises(BadValue, match=r"choices: pattern='\(': missing \)"):
        replace(suite, pattern="(")
    with pytest.raises(UnknownName, match="no mode 'few-shot'"):
        suite.prompt(suite.load()[0], "few-shot")


def test_it_rewards_as_it_judges(suite, monkeypatch):
    monkeypatch.setattr("core.data.sources.find_benchmark", lambda *_: suite)
    rows = problem_rows("choices", "test", None)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    said = ["The answer is (b).", "The answer is B."]
    assert Accuracy()(completions=said, **columns) == [1.0, 0.0]
    assert rows[0]["prompt"][0]["content"].endswith("(LETTER).")


def test_rows_of_it_keep_how_they_are_judged():
    row = {"id": "a", "prompt": "x", "answer": "B", "answers": vars(CHOICE) | {"texts": ["B"]}}
    assert problem_of(row).reference == CHOICE
