r"""The benchmarks' own rules: worked examples of their official code, and released outputs."""

import gzip
import json
import os
import re
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.laws.official_rules import (
    cmath_accuracy,
    equal_texts,
    gain_without_errors,
    math_matches,
)
from eval.errors import UnknownName
from eval.grading import grade_many, grade_officially
from eval.grading.official import mgsm_answer
from eval.grading.official_cmath import candidates, is_timeout, plain_fractions
from eval.grading.official_math import is_equivalent, normal_form
from eval.samples.side_by_side import official_score
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Problem

DATA = os.environ.get("REPRO_DATA")
needs_data = pytest.mark.skipif(
    not DATA or not (Path(DATA) / "model_outputs").is_dir(),
    reason="REPRO_DATA names no folder with model_outputs: THE OFFICIAL RULES ARE NOT CHECKED",
)
MATH_TEXT = st.text(r"\{}=/$%^.,! 0123x", max_size=8) | st.sampled_from(
    [r"\frac", r"\frac12", r"\frac{1}2", r"\sqrt", r"\sqrt3", r"5\text{ cm}", r"\text{ a}\text{ b}"]
)


def verdict(rule: str, output: str, answer: str, language: str = "en"):
    problem = Problem(id="p", question="q", answer=answer, language=language)
    return grade_officially([output], [problem], rule)[0]


@pytest.mark.parametrize(
    ("text", "extracted"),
    [
        ("... 3*4=<<3*4=12>>12\n#### 12", "12"),
        ("#### 1,250", "1250"),
        ("#### $18", None),
        ("#### 18.00", "18.00"),
        ("answer 18", None),
        ("#### 3\n#### 4", "3"),
        ("#### -7.", "-7."),
    ],
)
def test_gsm8k_takes_the_first_hash_line_as_text(text, extracted):
    assert verdict("gsm8k", text, "0").extracted == extracted
    assert verdict("gsm8k", text, extracted or "18").correct is (extracted is not None)


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        (r"\tfrac{1}{2}", "0.5", True),
        ("x=5", "5", True),
        (r"10\%", "10", True),
        (r"\frac12", "1/2", True),
        (r"3\text{ cm}", "3", True),
        (r"\sqrt3", r"\sqrt{3}", True),
        (r"90^\circ", "90", True),
        ("(1, 2)", "(1,2)", True),
        (r"\$5", "5", True),
        ("1,000", "1000", False),
        ("0.25", r"\frac{1}{4}", False),
        ("2", "2.0", False),
        ("x+1", "1+x", False),
        ("10%", "10", False),
        (".5", "0.5", True),
        ("abc=5", "5", False),  # a left side of more than two characters stays
        (r"\frac1", r"\frac1", True),
        (r"1\text{ a}\text{ b}", "1", False),  # two units: compared as they are written
    ],
)
def test_math_compares_normal_forms(first, second, is_equal):
    assert is_equivalent(first, second) is is_equal
    assert verdict("math", rf"so \boxed{{0}}, no, \boxed{{{first}}}.", second).correct is is_equal


@given(MATH_TEXT, MATH_TEXT)
def test_math_adds_matches_to_those_of_equal_texts_and_is_symmetric(first, second):
    assert is_equivalent(first, first)
    assert is_equivalent(first, second) == is_equivalent(second, first)


@given(st.integers(-99, 99), st.integers(1, 99))
def test_math_writes_integer_ratios_as_fractions(over, under):
    assert normal_form(f"{over}/{under}") == rf"\frac{{{over}}}{{{under}}}"


@pytest.mark.parametrize(
    ("language", "text", "target", "extracted", "is_right"),
    [
        ("zh", "... 答案: 1,234", "1234", "1234", True),
        ("zh", "... 答案：18.00 元", "18", "18.00", True),
        ("en", "so 18", "18", "", False),
        ("en", "Answer: -5", "5", "5", True),
        ("en", "Answer: 70 + 2 = 72", "72", "72", True),
        ("en", "Answer: 1\nAnswer: 20", "20", "20", True),
        ("de", "Antwort: 100", "100", "100", True),  # no decimal point: its zeros stay
    ],
)
def test_mgsm_takes_the_last_number_after_the_last_prefix(
    language, text, target, extracted, is_right
):
    assert mgsm_answer(text, language) == extracted
    assert verdict("mgsm", text, target, language).correct is is_right


@pytest.mark.parametrize(
    ("answer", "reply", "numbers", "is_right"),
    [
        ("12", "答案是12。", {"12"}, True),
        ("12", "每人3个，共3*4=12个", {"3", "12"}, True),
        ("3.14", "约等于3.1416", {"3.1416"}, True),
        ("5", "先算2+3=5，再算5*2=10", {"5", "10"}, True),
        ("100", "等于100.9", {"100.9"}, True),
        ("7", "没有数字", set(), False),
        ("1000", "一共1,000元", {"1000"}, True),
        ("50", "50%", {"50%"}, False),
        ("4", "共有4个，剩余6个和8个", {"6", "8"}, False),
        ("0.6", r"是\frac{3}{5}。", {"3/5"}, True),
        ("3/5", "占5分之3", {"3/5", "3"}, True),
    ],
)
def test_cmath_takes_either_of_the_last_two_numbers(answer, reply, numbers, is_right):
    assert numbers <= set(candidates(reply))
    found = verdict("cmath", reply, answer, "zh")
    assert found.correct is is_right
    assert set((found.extracted or "").split("; ")) - {""} == numbers


def test_cmath_leaves_errors_out_of_the_denominator():
    replies = ["是1。", "是2。", "是3。", "是9。", '{"error": 1}']
    problems = [Problem(id=r, question=r, answer=a) for r, a in zip(replies, "12345", strict=True)]
    counted = [v.correct for v in grade_officially(replies, problems, "cmath")]
    assert counted == [True, True, True, False, None]
    assert verdict("cmath", " ", "1").correct is None
    assert verdict("cmath", "请求已超时", "1").correct is None


def replied(replies, answers, benchmark):
    """The samples of these replies, two to a problem, and the problems."""
    problems = [Problem(id=f"p{i}", question="q", answer=a) for i, a in enumerate(answers)]
    samples = [
        Sample(
            benchmark=benchmark.name,
            id=f"p{i // 2}",
            sample=i % 2,
            output=reply,
            tokens=1,
            truncated=False,
            extracted=None,
            correct=None,
            rule="none",
            reason="",
        )
        for i, reply in enumerate(replies)
    ]
    return samples, problems


def test_the_official_score_is_a_mean_over_problems_without_their_errors():
    cmath = find_benchmark("cmath")
    replies = ["是1。", "", "是2。", "是9。", "timeout", "timeout"]
    found = official_score(*replied(replies, "123", cmath), cmath)
    assert found is not None
    assert (found["score"], found["errors"]) == (75.0, 3)  # 1 of 1, 1 of 2, and none at all
    assert found["interval"][0] <= 75.0 <= found["interval"][1]
    nothing = official_score(*replied(["", ""], "1", cmath), cmath)
    assert nothing == {"rule": "cmath", "score": None, "interval": None, "errors": 2}
    pocket = find_benchmark("pocket-cmath")
    assert official_score(*replied(replies, "123", pocket), pocket) is None


def test_laws_of_the_rules_count_more_than_equal_texts():
    assert sum(math_matches()) > 2 * sum(equal_texts())
    assert all(n == 1 for n in equal_texts())
    assert all(a >= b for a, b in zip(cmath_accuracy(2), cmath_accuracy(1), strict=True))
    assert sum(cmath_accuracy(2)) > sum(cmath_accuracy(1))
    gains = gain_without_errors(5)
    assert min(gains) == 0.0
    assert max(gains) == pytest.approx(1 - 1 / 5)  # one right reply beside four errors


def test_another_thread_reaches_the_same_verdicts():
    """In a thread that no timer can interrupt, the rules run in a worker process."""
    problems = [Problem(id="p", question="q", answer="12")] * 2
    found = []
    thread = Thread(
        target=lambda: found.extend(grade_officially(["#### 12", "12"], problems, "gsm8k"))
    )
    thread.start()
    thread.join()
    assert found == grade_officially(["#### 12", "12"], problems, "gsm8k")


def test_an_unknown_rule_is_named():
    with pytest.raises(UnknownName, match="mathh"):
        verdict("mathh", "", "1")


def released(name: str) -> tuple[list[dict], list[Problem]]:
    """The rows of a file of released outputs, and their problems."""
    path = Path(DATA or "") / "model_outputs" / f"{name}.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]]
    problems = {
        p.id: p
        for p in find_benchmark("math" if name.startswith("math") else "gsm8k").load(
            Path(DATA or "")
        )
    }
    return rows, [problems[row["id"]] for row in rows]


@needs_data
@pytest.mark.parametrize(
    ("name", "right"),
    [("gsm8k_openai_6b_finetuning", 286), ("gsm8k_openai_6b_verification", 515)],
)
def test_released_solutions_have_the_printed_accuracy(name, right):
    """The released file writes `A: N` for the line that its data and its script write `#### N`."""
    rows, problems = released(name)
    outputs = ["#### ".join(row["output"].rsplit("A: ", 1)) for row in rows]
    verdicts = grade_officially(outputs, problems, "gsm8k")
    assert sum(v.correct is True for v in verdicts) == right
    assert [v.correct for v in verdicts] == [row["published_correct"] for row in rows]
    raw = grade_officially([row["output"] for row in rows], problems, "gsm8k")
    assert not any(v.correct for v in raw)  # no match is wrong, whatever stands there


@needs_data
@pytest.mark.parametrize(
    "name",
    [
        "math_qwen2.5-math-example_cot_8samples_a",
        "math500_rho-math-1b-v0.1_cot",
        "math_mathcoder-l-7b_tir_correct_a",
    ],
)
def test_the_normal_form_only_adds_matches_and_the_strict_grader_has_all_of_them(name):
    rows, problems = released(name)
    outputs = [row["output"] for row in rows]
    official = grade_officially(outputs, problems, "math")
    equal = [v.extracted == p.answer for v, p in zip(official, problems, strict=True)]
    strict = grade_many(outputs, [p.reference for p in problems])
    assert sum(equal) < sum(v.correct is True for v in official)  # it adds some on each file
    assert all(v.correct for v, same in zip(official, equal, strict=True) if same)
    lost = [
        o.extracted for o, s in zip(official, strict, strict=True) if o.correct and not s.correct
    ]
    assert lost == []


@given(st.lists(st.sampled_from([r"\frac{", "{", "}", "1", "}{", "\n"]), max_size=16).map("".join))
def test_fractions_are_those_of_the_official_pattern(text):
    assert plain_fractions(text) == re.sub(r"\\frac{([^}]+)}{([^}]+)}", r"\1/\2", text)


@given(st.lists(st.sampled_from(["请求", "超时", "a", "\n", "timeout"]), max_size=8).map("".join))
def test_timeouts_are_those_of_the_official_pattern(text):
    assert is_timeout(text) == bool(re.search("请求.*超时|timeout", text))
