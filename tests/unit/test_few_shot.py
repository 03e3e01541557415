"""Few-shot prompts: examples in the paper's format, plain text, stopped at the next question."""

import pytest

from core.rollout.stops import before_stop, stop_function
from core.samplers.policy import PolicySampler
from eval.errors import UnknownName
from eval.grading import grade
from eval.samples.evaluation import Decoding
from eval.sets.benchmarks import find_benchmark
from eval.sets.fewshot import SHOTS, examples
from eval.sets.problem import Problem

COUNTS = {"stories_en": 8, "latex_en": 4, "stories_zh": 6}


@pytest.mark.parametrize(("key", "shots"), SHOTS.items())
def test_the_examples_have_the_frame_of_the_question(key, shots):
    text = examples(shots.name)
    marker = shots.stop.strip()
    parts = text.strip().split(f"\n\n{marker}")
    assert len(parts) == COUNTS[shots.name]
    problem = Problem(id="1", question="{x} \\frac{1}{2}?", answer="2", language=key[1])
    prompt = shots.prompt(problem)
    assert prompt.startswith(text)
    assert prompt.removeprefix(text) == shots.frame.format(problem.question)
    head, solution = shots.frame.split("{}")
    for part in (marker + part if i else part for i, part in enumerate(parts)):
        assert part.startswith(head)
        assert solution.strip() in part


@pytest.mark.parametrize(("key", "shots"), SHOTS.items())
def test_the_grader_reads_the_answer_of_every_example(key, shots):
    """What the examples teach is what the grader takes, also when the model runs on."""
    parts = examples(shots.name).strip().split(f"\n\n{shots.stop.strip()}")
    for part in parts:
        solution = part.split(shots.frame.split("{}")[1].strip())[-1]
        verdict = grade(solution, "-1", key[1])
        assert verdict.rule == "phrase"
        assert verdict.extracted in solution


def test_modes_ask_differently():
    gsm8k = find_benchmark("gsm8k")
    problem = Problem(id="1", question="How many?", answer="2", language="en")
    assert gsm8k.prompt(problem, "few-shot").endswith("\n\nQ: How many?\nA:")
    assert gsm8k.stop("few-shot") == ("\nQ:",)
    assert gsm8k.stop("cot") == ()
    with pytest.raises(UnknownName, match="few-shot"):
        gsm8k.prompt(problem, "fewshot")


def test_a_stop_string_ends_the_completion(build_llama, tiny_tokenizer):
    sampler = PolicySampler(build_llama(seed=4), tiny_tokenizer)
    drawn = Decoding(samples=40, temperature=2.0, max_tokens=12)
    ((*free,),) = sampler(["1+1"], drawn)
    text = next(c.text for c in free if len(c.text) > 4)
    stop = text[2:4]
    ((*ended,),) = sampler(["1+1"], Decoding(**{**vars(drawn), "stop": (stop,)}))
    assert any(c.stopped for c in ended)
    for completion in ended:
        assert stop not in completion.text
        assert completion.stopped <= (not completion.truncated)


def test_plain_text_and_a_start_are_not_wrapped_in_turns(build_llama, tiny_tokenizer):
    sampler = PolicySampler(build_llama(), tiny_tokenizer)
    plain = tiny_tokenizer.decode(sampler.encode("1+1=", chat=False))
    turns = tiny_tokenizer.decode(sampler.encode("1+1", "="))
    assert plain == "1+1="
    assert turns == "<user>1+1<assistant>="


def test_stops_are_found_across_tokens(tiny_tokenizer):
    stopped = stop_function(tiny_tokenizer, ["ab"])
    ids = tiny_tokenizer("xxab").input_ids
    assert [stopped(ids[:n]) for n in range(1, 5)] == [False, False, False, True]
    assert stop_function(tiny_tokenizer, []) is None
    assert before_stop("xxabyab", ["ab", "y"]) == "xx"
    assert before_stop("xx", ["ab"]) is None
