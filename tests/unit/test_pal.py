"""Answers that are programs: which value counts, and how a model is asked for a program."""

import pytest

from eval.grading import grade
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.pal import ProgramSampler, execute_programs
from eval.samples.store import regrade
from eval.samples.transcripts import graded_part, last_output
from eval.sandbox import Sandbox
from eval.sets.benchmarks import find_benchmark
from eval.sets.fewshot import PROGRAMS, examples
from eval.sets.problem import Problem
from eval.stats.summary import score

GREEDY = Decoding(max_tokens=50)
POCKET = find_benchmark("pocket-gsm8k")


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(allow_plain=True, timeout_s=5) as box:
        yield box


def value(output, sandbox):
    [transcript] = execute_programs([output], sandbox)
    return last_output(transcript)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("ans = 6 * 7", "42"),
        ("ans = 1\nans = 2", "2"),
        ("answer = 6 * 7", "42"),
        ("print('so')\nprint(6 * 7)", "42"),
        ("def solution():\n    return 6 * 7\nprint('a check')", "42"),
        ("def solution():\n    print(6 * 7)\nsolution()", "42"),
        ("\n\n\ndef solution():\n    result = 6 * 7\n    return result\n\n\n", "42"),
        ("```python\nans = 6 * 7\n```\nThe answer is 41.", "42"),
        ("```\nanswer = sqrt(9)\n```\nThe imports are\n```\nfrom sympy import sqrt\n```", "3"),
        ("from sympy import sqrt\nans = sqrt(8)", r"2 \sqrt{2}"),
        ("First\n```python\nx = 6\n```\nand then\n```python\nprint(x * 7)\n```", "42"),
        ("ans = 6 * 7\n```output\n41\n```", "42"),
        ("str = print = list = len = 1\nans = 42", "42"),
        ("from sympy import symbols, solve\nx = symbols('x')\nans = solve(x**2 - 4, x)", "-2, 2"),
        ("from sympy import *\nans = Rational(3, 4)", r"\frac{3}{4}"),
        ("from sympy import *\nans = Interval(2, 5)", r"\left[2, 5\right]"),
        ("ans = (1, 2)", "(1, 2)"),
        ("ans = {'y': 2, 'x': 1}", "y = 2, x = 1"),
        ("import numpy as np\nans = np.array([3, 4]).sum()", "7"),
        ("ans = 3 + 4j", "3+4i"),
        ("x = 3", ""),
    ],
)  # fmt: skip
def test_the_value_of_a_program(output, expected, sandbox):
    assert value(output, sandbox) == expected


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("ans = 1 / 0", "ZeroDivisionError"),
        ("ans = 6 *", "SyntaxError"),
        ("The answer is 42.", "SyntaxError"),
        ("def solution(x):\n    return x", "TypeError"),
        ("print(42)\nraise ValueError('no')", "ValueError"),
    ],
)
def test_a_program_that_fails_has_no_answer(output, error, sandbox):
    [transcript] = execute_programs([output], sandbox)
    assert error in (last_output(transcript) or "")
    assert grade(graded_part(transcript, "pal"), "42").extracted is None


def test_a_printed_sentence_states_its_number(sandbox):
    [transcript] = execute_programs(["x = 42\nprint(f'Ann has {x} eggs after 3 days.')"], sandbox)
    assert grade(graded_part(transcript, "pal"), "42").correct is True


def test_only_the_value_is_graded_and_errors_are_counted(sandbox):
    problems = POCKET.load(limit=4)
    wrong = "# The answer is {0}, \\boxed{{{0}}}\nprint({0})\nans = -98765"
    written = [
        f"ans = {problems[0].answer}",
        wrong.format(problems[1].answer),
        f"print('The answer is -98765')\ndef solution():\n    return {problems[2].answer}.0",
        "ans = 1 / 0",
    ]

    def sampler(prompts, decoding, starts=None):  # noqa: ARG001 - a sampler's signature
        assert decoding.stop == ("\nQ:",)
        assert not decoding.chat
        return [[Completion(text, 9, truncated=False)] for text in written]

    program_sampler = ProgramSampler(sampler, sandbox)
    samples = run_benchmark(program_sampler, POCKET, limit=4, mode="pal", decoding=GREEDY)
    assert [s.correct for s in samples] == [True, False, True, False]
    assert {s.rule for s in samples[:3]} == {"output"}
    assert [s.correct for s in regrade(samples, problems, "pal")] == [s.correct for s in samples]
    (found,) = score(samples, POCKET, mode="pal")
    assert (found.value, found.programs, found.executor_errors) == (50, 4, 1)


ANSWERS = {
    "programs_en": "18 35 26 70 20 90 150 39".split(),  # noqa: SIM905
    "programs_latex_en": ["7", "420", r"\frac{5}{13}", "[0, 4]"],
}


@pytest.mark.parametrize("style", PROGRAMS)
def test_the_examples_are_programs_that_give_the_answer(style, sandbox):
    shots = PROGRAMS[style]
    head, ask = shots.frame.split("{}")
    parts = (
        examples(shots.name)
        .strip()
        .split(shots.stop + shots.frame[len(shots.stop) - 1 : len(head)])
    )
    solutions = [part.split(ask, 1)[1] for part in parts]
    transcripts = execute_programs(solutions, sandbox)
    assert len(transcripts) == len(ANSWERS[shots.name])
    for transcript, answer in zip(transcripts, ANSWERS[shots.name], strict=True):
        assert grade(graded_part(transcript, "pal"), answer).correct is True, transcript


def test_a_model_is_asked_in_the_form_of_the_paper():
    problem = Problem(id="1", question="How many?", answer="2", language="en")
    gsm8k, math = find_benchmark("gsm8k"), find_benchmark("math")
    assert gsm8k.prompt(problem, "pal").endswith(
        "    result = aunt\n    return result\n\n\n\n\n\nQ: How many?\n\n# solution in Python:"
    )
    assert gsm8k.stop("pal") == ("\nQ:",)
    assert math.prompt(problem, "pal").endswith(
        "\n```\nI hope my solution is correct.\n\nProblem:\nHow many?\n\n"
        "You are an expert programmer. "
        "Solve the above mathematical problem by writing a Python program. "
        "Express your answer as a numeric type or a SymPy object."
    )
    assert math.stop("pal") == ("\nProblem:",)
    chinese = Problem(id="1", question="多少？", answer="2", language="zh")
    assert (
        find_benchmark("cmath")
        .prompt(chinese, "pal")
        .endswith("Q: 多少？\n\n# solution in Python:")
    )
