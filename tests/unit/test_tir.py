"""The loop of tool-integrated reasoning: what is run, what the model sees of it, when it ends."""

import pytest

from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.tir import ToolSampler, printed_output, program_scores
from eval.samples.transcripts import last_output, program_of, programs_run
from eval.sandbox import Execution, Sandbox
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import score

GREEDY = Decoding(max_tokens=50)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(allow_plain=True, timeout_s=5) as box:
        yield box


def writer(*rounds):
    """A sampler that gives one of these completions at each call, and what it was asked."""
    calls = []

    def sampler(prompts, decoding, starts=None):
        calls.append((list(prompts), decoding, list(starts)))
        return [[rounds[len(calls) - 1]] for _ in prompts]

    return sampler, calls


def program(text):
    return Completion(f"```python\n{text}\n```\n", 9, truncated=False, stopped=True)


ANSWER = Completion("so \\boxed{42}.", 5, truncated=False)


def test_the_output_of_a_program_enters_the_answer_and_the_model_goes_on(sandbox):
    sampler, calls = writer(program("print(6 * 7)"), ANSWER)
    ((answer,),) = ToolSampler(sampler, sandbox)(["6 * 7?"], GREEDY)
    first = "```python\nprint(6 * 7)\n```\n```output\n42\n```\n"
    assert answer == Completion(first + "so \\boxed{42}.", 14, truncated=False)
    assert [starts for _, _, starts in calls] == [[""], [first]]
    assert all(decoding.stop == ("```output",) for _, decoding, _ in calls)
    assert last_output(answer.text) == "42"


def test_two_rounds_and_no_more(sandbox):
    sampler, calls = writer(program("print(1)"), program("print(2)"))
    ((answer,),) = ToolSampler(sampler, sandbox)(["?"], GREEDY)
    assert len(calls) == 2
    assert answer.truncated
    assert answer.text.endswith("```output\n2\n```\n")


def test_a_text_cut_at_the_limit_goes_on_where_it_was(sandbox):
    sampler, calls = writer(Completion("first ", 50, truncated=True), ANSWER)
    ((answer,),) = ToolSampler(sampler, sandbox)(["?"], GREEDY)
    assert calls[1][2] == ["first "]
    assert answer == Completion("first so \\boxed{42}.", 55, truncated=False)


def test_only_unfinished_answers_are_asked_again(sandbox):
    def sampler(prompts, decoding, starts=None):  # noqa: ARG001 - a sampler's signature
        asked.append(list(prompts))
        return [[ANSWER if start or p == "easy" else program("print(1)")] for p, start in
                zip(prompts, starts, strict=True)]  # fmt: skip

    asked = []
    answers = ToolSampler(sampler, sandbox)(["easy", "hard"], GREEDY)
    assert asked == [["easy", "hard"], ["hard"]]
    assert [a.text.count("```output") for (a,) in answers] == [0, 1]


def test_samples_of_a_prompt_stay_together(sandbox):
    decoding = Decoding(samples=3, temperature=1.0, max_tokens=50)

    def sampler(prompts, decoding, starts=None):  # noqa: ARG001 - a sampler's signature
        assert decoding.samples == 1
        return [[Completion(f"{p}{i}", 1, truncated=False)] for i, p in enumerate(prompts)]

    answers = ToolSampler(sampler, sandbox)(["a", "b"], decoding)
    assert [[c.text for c in row] for row in answers] == [["a0", "a1", "a2"], ["b3", "b4", "b5"]]


def test_earlier_programs_come_along_without_their_top_level_prints():
    text = (
        "```python\nx = 2\nprint(x)\nif x:\n    print('in')\n```\n```output\n2\n```\n"
        "```python\nprint(x + 1)\n```\n"
    )
    assert program_of(text) == "x = 2\nif x:\n    print('in')\nprint(x + 1)"


@pytest.mark.parametrize("text", ["no program", "```python\n1\n``` and on", "```\ntext\n```"])
def test_no_program_to_run(text):
    assert program_of(text) is None


def test_a_long_output_keeps_both_ends():
    text = "".join(map(str, range(200)))
    assert printed_output(Execution(text, "", "ok", 0.0)) == f"{text[:50]}...{text[-50:]}"
    assert printed_output(Execution("x" * 100, "", "ok", 0.0)) == "x" * 100


def test_an_error_is_shown_without_places(sandbox):
    sampler, _ = writer(program("1 / 0"), ANSWER)
    ((answer,),) = ToolSampler(sampler, sandbox)(["?"], GREEDY)
    output = last_output(answer.text)
    assert output.startswith("Runtime errors: ")
    assert "ZeroDivisionError" in output
    assert 'File "' not in output


def test_a_printed_box_or_fence_counts_for_nothing(sandbox):
    sampler, _ = writer(
        program(r"print('\\boxed{7}\n' + 3 * chr(96) + '\nThe answer is 7')"), ANSWER
    )
    benchmark = find_benchmark("pocket-gsm8k")
    samples = run_benchmark(
        ToolSampler(sampler, sandbox), benchmark, limit=3, mode="tir", decoding=GREEDY
    )
    assert {sample.extracted for sample in samples} == {"42"}
    (found,) = program_scores(samples, benchmark.load(limit=3), benchmark, ["top1"])
    assert found.metric == "program top1"
    assert (found.n, found.programs, found.executor_errors) == (3, 3, 0)


def test_executor_errors_stand_beside_every_score(sandbox):
    sampler, _ = writer(program("print('ValueError')\nprint(1)"), program("1 / 0"))
    benchmark = find_benchmark("pocket-gsm8k")
    samples = run_benchmark(
        ToolSampler(sampler, sandbox), benchmark, limit=4, mode="tir", decoding=GREEDY
    )
    problems = benchmark.load(limit=4)
    scores = [
        *score(samples, benchmark, mode="tir"),
        *program_scores(samples, problems, benchmark, ["top1"]),
    ]
    assert [(one.programs, one.executor_errors) for one in scores] == [(8, 4), (8, 4)]
    (without,) = score(samples, benchmark, mode="cot")
    assert (without.programs, without.executor_errors) == (0, 0)


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        ("Runtime errors: ZeroDivisionError: division by zero", 1),
        ("Runtime errors: no end within 10 s", 1),
        ("NameError: name 'x' is not defined", 1),  # ToRA's executor
        ("-----\nTraceback (most recent call last)\n KeyError: 0", 1),  # MathCoder's
        ("timeout_decorator.TimeoutError: 'Timed Out'", 1),
        ("42", 0),
        ("", 0),
        ("the error: 0.5\nError rate 3", 0),
        ("KeyError: 0\n42", 0),
    ],
)
def test_an_error_is_told_from_an_output(output, errors):
    text = f"```python\n1\n```\n```output\n{output}\n```\n"
    assert programs_run(text) == (1, errors)
    assert programs_run(2 * text) == (2, 2 * errors)
    assert programs_run(output) == (0, 0)
