r"""DeepSeekMath's rules: the same verdicts as its published code gave, and its known faults.

The published code was run on `model_outputs`; its scores are the columns of that folder's README.
A sample that nobody had to adjudicate has the verdict of all three graders, the paper's included.
"""

import gzip
import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

from eval.grading import Verdict, grade_as_paper, paper_symbolic
from eval.samples.side_by_side import judge_both
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Problem

DATA = os.environ.get("REPRO_DATA")
needs_data = pytest.mark.skipif(
    not DATA or not (Path(DATA) / "model_outputs").is_dir(),
    reason="REPRO_DATA names no folder with model_outputs: THE PAPER'S GRADER IS NOT CHECKED",
)
# percent right: zero-shot, few-shot and by the programs' output; None: not published, or too slow
# to parse for a test
PUBLISHED = {
    "gsm8k_mathcoder-l-7b_tir": (64.90, None, None),
    "gsm8k_openai_6b_finetuning": (21.99, 21.99, None),
    "gsm8k_openai_6b_verification": (39.27, 39.27, None),
    "gsm8k_pot-codex-fewshot": (71.85, None, None),
    "gsm8k_rho-math-1b-interpreter-v0.1_tir": (58.38, None, None),
    "gsm8k_rho-math-1b-v0.1_cot": (35.41, 35.63, None),
    "gsm8k_tora-code-34b_tir": (80.67, None, 79.30),
    "math500_rho-math-1b-interpreter-v0.1_tir": (40.40, None, None),
    "math500_rho-math-1b-v0.1_cot": (15.00, None, None),
    "math_mathcoder-l-7b_tir_correct_a": (96.27, None, None),
    "math_qwen2.5-math-example_cot_8samples_a": (87.75, 87.75, None),
}


@cache
def problems() -> dict[str, Problem]:
    return {p.id: p for b in ("gsm8k", "math") for p in find_benchmark(b).load(Path(DATA or ""))}


@cache
def rows_of(name: str) -> list[dict]:
    path = Path(DATA or "") / "model_outputs" / f"{name}.jsonl.gz"
    return [json.loads(line) for line in gzip.open(path).read().split(b"\n")[:-1]]


@cache
def graded(name: str, part: str) -> list[Verdict]:
    rows = rows_of(name)
    outputs = [
        rf"\boxed{{{r['published_prediction']}}}" if r["mode"] == "pot" else r["output"]
        for r in rows
    ]
    listed = name.startswith("math")
    asked = [problems()[r["id"]] for r in rows]
    return grade_as_paper(outputs, asked, listed=listed, part=part)  # type: ignore[arg-type]


def percent(verdicts: list[Verdict]) -> float:
    return 100 * sum(v.correct is True for v in verdicts) / len(verdicts)


@needs_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_scores_are_those_of_the_published_code(name: str):
    zero, few, program = PUBLISHED[name]
    assert percent(graded(name, "answer")) == pytest.approx(zero, abs=0.005)
    if few is not None:
        assert percent(graded(name, "few-shot")) == pytest.approx(few, abs=0.005)
    if program is not None:
        assert percent(graded(name, "program")) == pytest.approx(program, abs=0.005)
    assert all(v.correct is not None for v in graded(name, "answer"))


@needs_data
def test_the_verdict_is_that_of_all_graders_where_they_agreed():
    lines = (Path(DATA or "") / "model_outputs/adjudicated.jsonl").read_bytes().split(b"\n")[:-1]
    disputed = {(r["file"], r["id"], r["sample"]) for r in map(json.loads, lines)}
    same = [
        verdict.correct == row["published_correct"]
        for name in PUBLISHED
        for row, verdict in zip(rows_of(name), graded(name, "answer"), strict=True)
        if row["published_correct"] is not None and (name, row["id"], row["sample"]) not in disputed
    ]
    assert len(same) > 8000
    assert all(same)


@needs_data
def test_tora_34b_prints_as_published():
    assert f"{percent(graded('gsm8k_tora-code-34b_tir', 'answer')):.1f}" == "80.7"


def verdict(output: str, answer: str, question: str = "", *, listed: bool = True) -> Verdict:
    problem = Problem(id="p", question=question, answer=answer)
    return grade_as_paper([output], [problem], listed=listed)[0]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("5", r"\boxed{0.05}"),  # a factor of 100
        ("12", r"\boxed{1200\%}"),
        (".0000672", r"\boxed{0.000992}"),  # within 0.001
        (r"(-\infty,0]", r"\boxed{(-\infty,0)}"),  # brackets do not count
        (r"\frac{1}{3}", r"\boxed{0.3333}"),
        ("y = 2x + 1", r"\boxed{2x - y = -1}"),  # equations up to the sign
        ("5", r"\boxed{x = 5}"),
        ("8", "\\boxed{8)}"),  # the longest start that is a formula
        (
            r"\begin{pmatrix} 1 \\ \frac{1}{2} \end{pmatrix}",
            "\\boxed{\\begin{bmatrix}1\\\\0.5\\end{bmatrix}}",
        ),
        ("3:1", r"\boxed{3}"),  # a colon divides
        ("5", "It is 4, no: 5"),
        ("5", "```python\nprint(5)\n```\n```output\n5\n```\n"),
        ("5", "The final answer is $5$. I hope it is correct. So 6."),
        ("1,2", r"\boxed{7} then \boxed{2} and \boxed{1}"),
    ],
)
def test_what_the_paper_accepts(answer: str, output: str):
    question = "separated by commas" if answer == "1,2" else ""
    assert verdict(output, answer, question).correct is True


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("16", "The answer is 16 hours."),  # a unit after the phrase
        ("5", r"\boxed{5"),  # an unclosed box is no answer, and nothing else is looked for
        ("Saturday", r"\boxed{\mbox{Saturday}}"),
        (r"\sqrt{2}", r"\boxed{\\sqrt{2}}"),
        (r"2\pi", r"\boxed{6.2832}"),  # \pi is a letter
        ("5", r"\boxed{6}"),
        ("1,2", r"\boxed{2}"),
        ("5", ""),
    ],
)
def test_what_the_paper_refuses(answer: str, output: str):
    question = "separated by commas" if answer == "1,2" else ""
    assert verdict(output, answer, question).correct is False


def test_every_box_of_a_solution_counts_where_boxes_are_listed():
    problem = Problem(id="p", question="", answer="1", solution=r"\boxed{-2} and \boxed{1}")
    outputs = [r"\boxed{1} \boxed{-2}", r"\boxed{1}", r"\boxed{-2} \boxed{2}"]
    assert [v.correct for v in grade_as_paper(outputs, [problem] * 3, listed=True)] == [
        True,
        False,
        False,
    ]
    assert grade_as_paper(outputs[1:2], [problem], listed=False)[0].correct is True


def test_a_text_is_never_evaluated_and_a_hang_is_no_verdict(tmp_path: Path):
    mark = tmp_path / "mark"
    assert verdict(rf"\boxed{{__import__('os').system('touch {mark}')}}", "3").correct is False
    assert not mark.exists()
    assert verdict(r"\boxed{9^{9^{9^9}}+x}", "3").correct is None
    assert verdict(r"\boxed{\frac{6}{2}}", "3").correct is True


def test_few_shot_stops_at_the_next_example():
    gsm8k = Problem(id="g", question="", answer="7")
    cmath = Problem(id="c", question="", answer="7", language="zh")
    shots = grade_as_paper(
        ["so 7.\n\nQ: next? 8", "答案是7。\n8\n问题：下一个 9", "1,007"],
        [gsm8k, cmath, Problem(id="t", question="", answer="1007")],
        listed=False,
        part="few-shot",
    )
    assert [(v.extracted, v.correct) for v in shots] == [("7.", True), ("7", True), ("007", False)]


def test_a_few_shot_run_is_read_by_the_few_shot_rules():
    benchmark = find_benchmark("pocket-gsm8k")
    problem = Problem(id="g", question="", answer="7")
    sample = Sample(
        benchmark=benchmark.name,
        id="g",
        sample=0,
        output="so 7 eggs\n\nQ: next? 8",
        tokens=1,
        truncated=False,
        extracted=None,
        correct=None,
        rule="none",
        reason="",
    )
    read = {
        mode: judge_both([sample], [problem], benchmark, mode)[0].paper.extracted
        for mode in ("cot", "few-shot")
    }
    assert read == {"cot": "8", "few-shot": "7"}


@pytest.mark.parametrize("text", ["7", "70", "0.25", "3.1400", "12345678901234567890.5"])
def test_a_plain_number_is_what_the_grammar_makes_of_it(text: str, monkeypatch: pytest.MonkeyPatch):
    plain = paper_symbolic.parse_prefix(text)
    monkeypatch.setattr(paper_symbolic, "NUMBER", re.compile("(?!)"))
    parsed = paper_symbolic.parse_prefix(text)
    assert (type(plain), plain) == (type(parsed), parsed)
