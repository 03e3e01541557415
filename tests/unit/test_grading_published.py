"""The grader against outputs that others published, with verdicts that others reached.

Needs REPRO_DATA. Truth is what the published label, math-verify and DeepSeekMath's rules agree on,
else what a reader found; a file without labels takes math-verify's verdict for the label's.
"""

import gzip
import json
import logging
import os
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import pytest
from grader_clock import clock
from math_verify import parse, verify

from core.evaluate.outputs import score_file
from eval.grading import Verdict, grade, grade_many
from eval.grading.numerals import read_number
from eval.grading.structure import form_of
from eval.sets.benchmarks import find_benchmark
from eval.sets.loading import read_problems
from eval.sets.problem import Answers, Problem

DATA = os.environ.get("REPRO_DATA")
needs_data = pytest.mark.skipif(
    not DATA or not (Path(DATA) / "model_outputs").is_dir(),
    reason="REPRO_DATA names no folder with model_outputs: the grader is NOT checked on real text",
)
# (accepted though wrong, rejected though right) by us, math-verify 0.9.0 and DeepSeekMath's rules
FILES = {
    "gsm8k_mathcoder-l-7b_tir": ((0, 0), (1, 1), (2, 0)),
    "gsm8k_openai_6b_finetuning": ((0, 0), (0, 0), (4, 0)),
    "gsm8k_openai_6b_verification": ((0, 0), (0, 0), (3, 0)),
    "gsm8k_rho-math-1b-interpreter-v0.1_tir": ((0, 0), (0, 3), (2, 0)),
    "gsm8k_rho-math-1b-v0.1_cot": ((0, 0), (0, 0), (2, 12)),
    "gsm8k_tora-code-34b_tir": ((0, 0), (0, 5), (1, 0)),
    "math500_rho-math-1b-interpreter-v0.1_tir": ((0, 0), (0, 0), (2, 2)),
    "math500_rho-math-1b-v0.1_cot": ((0, 0), (2, 2), (1, 12)),
    "math_mathcoder-l-7b_tir_correct_a": ((0, 2), (0, 0), (1, 6)),
    "math_qwen2.5-math-example_cot_8samples_a": ((0, 0), (0, 0), (0, 1)),
}
# 0.034965 for 5/143 and 4.472136 for 2 sqrt(5): all three others take a rounded decimal here
ROUNDED = {"math_mathcoder-l-7b_tir_correct_a": 2}


@cache
def references(benchmark: str) -> dict[str, Answers]:
    return {p.id: p.reference for p in find_benchmark(benchmark).load(Path(DATA or ""))}


def rows_of(name: str) -> list[dict]:
    path = Path(DATA or "") / "model_outputs" / f"{name}.jsonl.gz"
    return [json.loads(line) for line in gzip.open(path).read().split(b"\n")[:-1]]


@cache
def adjudicated() -> dict[tuple[str, str, int], bool | None]:
    lines = (Path(DATA or "") / "model_outputs/adjudicated.jsonl").read_bytes().split(b"\n")[:-1]
    return {(r["file"], r["id"], r["sample"]): r["correct"] for r in map(json.loads, lines)}


@cache
def graded(name: str) -> tuple[list[Verdict], float]:
    """The verdicts on a file, and the processor time of this process and the workers."""
    rows, began = rows_of(name), clock()
    gold = references(name.split("_")[0].replace("math500", "math"))
    verdicts = grade_many([r["output"] for r in rows], [gold[r["id"]] for r in rows])
    return verdicts, clock() - began


def labels(name: str) -> list[bool]:
    """The published labels, else math-verify's verdicts."""
    rows = rows_of(name)
    if rows[0]["published_correct"] is not None:
        return [r["published_correct"] for r in rows]
    gold = references(name.split("_")[0])
    logging.disable(logging.WARNING)
    given = [parse(r["output"]) for r in rows]
    found = [verify(parse(gold[r["id"]].texts[0]), g) for r, g in zip(rows, given, strict=True)]
    logging.disable(logging.NOTSET)
    return found


@needs_data
@pytest.mark.parametrize("name", FILES)
def test_published_outputs(name: str):
    accepted = rejected = 0
    rows = zip(rows_of(name), labels(name), graded(name)[0], strict=True)
    for row, label, verdict in rows:
        truth = adjudicated().get((name, row["id"], row["sample"]), label)
        assert verdict.correct is not None
        accepted += verdict.correct and truth is False
        rejected += not verdict.correct and truth is True
    print(f"{name}: {accepted} accepted though wrong, {rejected} rejected though right")
    assert (accepted, rejected) == FILES[name][0]


@needs_data
@pytest.mark.long
def test_published_programs_are_within_a_point_of_their_score():
    """Program of Thoughts: 71.6 with a calculator for some; one problem of 1319 is missing."""
    name = "gsm8k_pot-codex-fewshot"
    path = Path(DATA or "") / "model_outputs" / f"{name}.jsonl.gz"
    gsm8k = find_benchmark("gsm8k")
    samples, (found,) = score_file(path, gsm8k, data=Path(DATA or ""), mode="pal")
    assert (found.n, found.total) == (1318, 1319)
    assert abs(found.value - 71.6) < 1
    gold = references("gsm8k")
    published = [row["published_prediction"] or "" for row in rows_of(name)]
    theirs = grade_many(published, [gold[s.id] for s in samples])
    pairs = zip(samples, theirs, strict=True)
    assert sum(s.correct is not v.correct for s, v in pairs) <= 2  # one needs more than 10 s


def test_no_file_has_more_errors_than_the_others_but_for_rounded_decimals():
    for name, errors in FILES.items():
        ours, *others = map(sum, errors)
        assert ours == ROUNDED.get(name, 0) <= min(others) + ROUNDED.get(name, 0)
    ours, *others = (sum(sum(errors[i]) for errors in FILES.values()) for i in range(3))
    assert ours < min(others)


@needs_data
def test_ten_thousand_outputs_take_less_than_a_minute_of_one_core():
    n = sum(len(graded(name)[0]) for name in FILES)
    assert sum(graded(name)[1] for name in FILES) * 10_000 / n < 60


@needs_data
@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_reference_solutions_are_right(name: str):
    problems = find_benchmark(name).load(Path(DATA or ""))
    verdicts = grade_many([p.solution or "" for p in problems], [p.reference for p in problems])
    assert [v.correct for v in verdicts].count(True) == len(problems)


@needs_data
def test_questions_with_several_boxes_count_as_the_data_says():
    asked = [a for a in references("math").values() if a.counts in ("all", "any")]
    assert sorted(a.counts for a in asked) == ["all"] * 8 + ["any"] * 5
    for answers in asked:
        boxes = [rf"\boxed{{{text}}}" for text in answers.texts]
        whole = [" then ".join(boxes), " then ".join(reversed(boxes)), " and ".join(boxes)]
        if answers.counts == "all":
            listed = rf"\boxed{{{', '.join(answers.texts)}}}"
            assert all(v.correct for v in grade_many([*whole, listed], [answers] * 4))
            short = [" and ".join(b for b in boxes if b != left) for left in boxes]
            assert not any(v.correct for v in grade_many(short, [answers] * len(boxes)))
        else:
            assert all(v.correct for v in grade_many(boxes, [answers] * len(boxes)))
            assert grade(rf"{boxes[0]} or \boxed{{1000}}", answers).correct is False


SETS = ("gsm8k/train", "gsm8k/test", "math/test", "mgsm_en/test", "mgsm_zh/test", "cmath/dev",
        "cmath/test")  # fmt: skip
WRAPPED = {
    "en": (
        "So the answer is ${}$. I hope it is correct.",
        r"The answer is \({}\).",
        "It follows.\n#### {}",
        r"\boxed{{{}}}",
        r"so $\boxed{{ {} }}$.",
        r"\[\fbox{{{}}}\]",
    ),
    "zh": ("所以答案是{}。", "答案：{}", r"因此，\boxed{{{}}}。", "答案为${}$"),
}


def problems_of(name: str) -> list[Problem]:
    return read_problems(Path(DATA or "") / f"{name}.jsonl")


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_every_answer_equals_itself_in_all_wrappings(name: str):
    problems = problems_of(name)
    for i in range(max(map(len, WRAPPED.values()))):
        # dollars inside a formula's dollars are no LaTeX, and two lines are no phrase
        tried = [
            p
            for p in problems
            if i < len(WRAPPED[p.language]) and "$" not in p.answer and "\n" not in p.answer
        ]
        outputs = [WRAPPED[p.language][i].format(p.answer) for p in tried]
        verdicts = grade_many(outputs, [p.answer for p in tried], [p.language for p in tried])
        assert [p.id for p, v in zip(tried, verdicts, strict=True) if not v.correct] == []


CONTROLS = {
    "plus 1": lambda x: x + 1,
    "times 10": lambda x: x * 10,
    "times 100": lambda x: x * 100,
    "over 100": lambda x: x / 100,
    "sign": lambda x: -x,
}


def written(value: Fraction, like: str) -> str:
    """The value in the notation of another answer: with a bar, a percent sign or as a decimal."""
    percent = "%" if like.endswith("%") else ""
    if "/" in like:
        return f"{value.numerator}/{value.denominator}"
    digits = f"{float(value):.6f}".rstrip("0").rstrip(".")
    assert Fraction(digits) == value
    return digits + percent


@needs_data
@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", ["gsm8k/test", "mgsm_en/test", "mgsm_zh/test", "cmath/test"])
def test_another_number_is_never_accepted(name: str, control: str):
    outputs, gold, languages = [], [], []
    for problem in problems_of(name):
        number = read_number(problem.answer)
        assert number is not None, problem.answer
        other = CONTROLS[control](number.value)
        if other != number.value:
            answer = written(other, problem.answer)
            outputs += [rf"\boxed{{{answer}}}", WRAPPED[problem.language][0].format(answer)]
            gold += [problem.answer] * 2
            languages += [problem.language] * 2
    assert len(outputs) >= 2 * 245
    verdicts = grade_many(outputs, gold, languages)
    assert [o for o, v in zip(outputs, verdicts, strict=True) if v.correct is not False] == []


@needs_data
def test_swapped_pairs_and_other_brackets_are_never_accepted():
    other = str.maketrans("()[]", "[](" + ")")
    outputs, gold = [], []
    for problem in problems_of("math/test"):
        form = form_of(problem.answer)
        if form.kind != "tuple" or form.parts == form.parts[::-1]:
            continue
        turned = (form.mark, form.parts[::-1]), (form.mark.translate(other), form.parts)
        for mark, parts in turned:
            outputs.append(rf"\boxed{{{mark[0]}{', '.join(parts)}{mark[1]}}}")
            gold.append(problem.answer)
    assert len(outputs) > 200
    verdicts = grade_many(outputs, gold)
    wrong = [(g, o) for g, o, v in zip(gold, outputs, verdicts, strict=True) if v.correct]
    assert wrong == []


@needs_data
def test_answers_of_other_problems_are_wrong():
    problems = find_benchmark("math").load(Path(DATA or ""))
    random = Random(0)
    pairs = [random.sample(problems, 2) for _ in range(400)]
    verdicts = grade_many(
        [rf"\boxed{{{b.answer}}}" for _, b in pairs], [a.answer for a, _ in pairs]
    )
    equal = {(a.answer, b.answer) for (a, b), v in zip(pairs, verdicts, strict=True) if v.correct}
    assert {(a, b) for a, b in equal if a.strip() != b.strip()} == {("45", r"45^\circ")}
