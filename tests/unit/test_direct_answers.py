"""The mode of direct answers: their beginning is given, and they end with their line."""

import pytest

from core.stages.sources import source_of
from eval.errors import UnknownName
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.sets.benchmarks import find_benchmark

POCKET = find_benchmark("pocket-gsm8k")


def test_an_answer_is_its_beginning_and_what_continues_it():
    problems = POCKET.load(limit=2)

    def sampler(prompts, decoding, starts=None):
        assert starts == [r"\boxed{"] * 2
        assert (decoding.stop, decoding.chat) == (("\n",), True)
        assert all("step by step" not in prompt for prompt in prompts)
        right, wrong = problems[0].answer, int(problems[1].answer) + 1
        return [[Completion(f"{value}}}.", 3, truncated=False)] for value in (right, wrong)]

    decoding = Decoding(max_tokens=9)
    samples = run_benchmark(sampler, POCKET, limit=2, mode="direct", decoding=decoding)
    assert [(s.correct, s.tokens) for s in samples] == [(True, 3), (False, 3)]
    assert samples[0].output == rf"\boxed{{{problems[0].answer}}}."


def test_other_modes_begin_no_answer():
    assert [POCKET.beginning(mode) for mode in ("cot", "tir", "few-shot", "pal")] == [""] * 4
    assert "begun" not in source_of("pocket-gsm8k")
    assert source_of("pocket-gsm8k", "direct")["begun"] == r"\boxed{"


def test_a_benchmark_with_a_prompt_of_its_own_has_no_direct_answers():
    with pytest.raises(UnknownName, match="direct"):
        find_benchmark("nano-digits").check_mode("direct")
