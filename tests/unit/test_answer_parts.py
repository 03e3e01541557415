"""An answer is what an output states outside its reasoning, whatever marks its format has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rewards import Accuracy
from eval.grading import extract, grade
from eval.grading.parts import stated_spans
from eval.sets.problem import Answers

FORMATS = {
    "DeepSeek-R1, Qwen3": ("<think>\n", "\n</think>\n\n"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi-VL": ("◁think▷", "◁/think▷"),
    "Will Brown's GRPO": ("<reasoning>\n", "\n</reasoning>\n"),
    "in capitals": ("<REASONING>", "</REASONING>"),
    "EXAONE Deep": ("<thought>\n", "\n</thought>\n"),
    "Reflection": ("<thinking>", "</thinking>"),
    "in several words": ("<thought_process>", "</thought_process>"),
    "with an attribute": ('<think effort="high">', "</think>"),
    "Seed-OSS": ("<seed:think>", "</seed:think>"),
    "K2": ("<ifm|think>", "</ifm|think>"),
    "LongCat": ("<longcat_think>", "</longcat_think>"),
    "OpenThinker": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "Solar Open 2": ("<|think:start|>", "<|think:end|>"),
    "PLaMo 3": ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    "unsloth's GRPO": ("<start_working_out>", "<end_working_out>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "Gemma 4": ("<|channel>thought\n", "<channel|>"),
    "s1": ("<|im_start|>think\n", "\n<|im_start|>answer\n"),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "gpt-oss without special tokens": ("analysis", "assistantfinal"),
}
OPENED = {"Granite": ("Here is my thought process:\n", "\nHere is my response:\n")}
ANSWERS = (
    "The answer is {}.",
    "#### {}",
    "So she has {} apples in all.",
    r"It is \boxed{{{}}}.",
    "**Answer:** {}",
    "<answer>{}</answer>",
    "<answer>\n{}\n</answer>",
    "<|begin_of_box|>{}<|end_of_box|>",
    "<answer>{}",
    "The answer is {}.<|return|>",
    "{}<|im_end|>",
)
thoughts = st.lists(
    st.sampled_from(
        (r"Maybe \boxed{41}. ", "The answer is 41. ", "Wait, ", "6 * 7 = ", "\n#### 41\n", "no: ",
         r"I put it in \boxed{}. ", "<answer>41</answer> ", "`<think>` asks me so. ", "Q: 2 + 2?\n")
    ),
    min_size=1,
).map(lambda pieces: "We see: " + "".join(pieces))  # fmt: skip
numbers = st.integers(42, 9999)


@pytest.mark.parametrize("name", [*FORMATS, *OPENED])
@given(thoughts, numbers, st.sampled_from(ANSWERS))
@settings(deadline=None, max_examples=20)
def test_reasoning_changes_no_verdict(name: str, thought: str, number: int, answer: str):
    opening, closing = (FORMATS | OPENED)[name]
    said = answer.format(number)
    for output in (f"{opening}{thought}{closing}{said}", f"{opening}{closing}{said}"):
        assert extract(output).text == extract(said).text
        assert grade(output, str(number)).correct is True
        assert grade(output, "41").correct is False
    reward = Accuracy()(completions=[f"{opening}{thought}{closing}{said}"] * 2, answer=[number, 41])
    assert reward == [1.0, 0.0]


@pytest.mark.parametrize("name", FORMATS)
@given(thoughts, numbers, st.sampled_from(ANSWERS))
@settings(deadline=None, max_examples=20)
def test_reasoning_that_the_template_opened_ends_with_its_closing_mark(
    name: str, thought: str, number: int, answer: str
):
    said = answer.format(number)
    assert extract(f"{thought}{FORMATS[name][1]}{said}").text == extract(said).text


@pytest.mark.parametrize("name", [*FORMATS, *OPENED])
@given(thoughts)
@settings(deadline=None, max_examples=10)
def test_an_output_that_ends_within_its_reasoning_has_no_answer(name: str, thought: str):
    opening, closing = (FORMATS | OPENED)[name]
    for output in (f"{opening}{thought}", f"{opening}{thought}{closing}", f"{opening}{thought} 41"):
        assert extract(output).text is None
    assert extract(rf"\boxed{{41}}{opening}").text is None or name in OPENED or "gpt-oss w" in name


@given(
    st.lists(st.sampled_from(("<think>", "</think>", "a", " ", "[/THINK]", "<answer>")), max_size=9)
)
def test_spans_are_apart_and_hold_no_mark_of_reasoning(pieces: list[str]):
    output = "".join(pieces)
    spans = stated_spans(output)
    places = [place for span in spans for place in span]
    assert places == sorted(places)
    assert all(0 <= place <= len(output) for place in places)
    assert not any("think" in output[a:b].lower() for a, b in spans)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("<think>a</think> It is 41? <think>No.</think> The answer is 42.", "42"),
        (r"\boxed{42} <think>Check: 6 * 7.</think> It holds.", "42"),
        (r"\boxed{41} <think>Wrong.</think> The answer is 42.", "42"),
        (r"<think>In <think> tags: \boxed{41}</think>The answer is 42.</think>", "42"),
        (r"<thinking>a<reflection>no</reflection> \boxed{41}</thinking>So 42.", "42"),
        ("Put it between `<think>` and `</think>`. The answer is 42.", "42"),
        ("<solution>6 * 7\n= 42</solution>\n<answer>42</answer>", "42"),
        ("Use <answer></answer> tags. 6 * 7 = 42, so the answer is 42.", "42"),
        ("Use <answer>your answer</answer>. So <answer>42</answer>. It took 3 steps.", "42"),
        ("So it is 42 apples.</answer>", "42"),
        ("<answer>x + 1</answer> for 3 of them", "x+1"),
        ("If 3 < x and x > 2 then [see 5] the answer is 42.", "42"),
        ("[Analysis] 6 * 7\n[Answer] 42", "42"),
    ],
)
def test_passages_between_marks(output: str, answer: str):
    assert grade(output, answer).correct is True


@pytest.mark.parametrize(
    "output",
    [
        r"<thinking>a<reflection>no</reflection> \boxed{42}, so",
        "There are 42 apples. <think>Let me see",
        r"<|channel|>analysis<|message|>\boxed{42}<|end|><|start|>assistant<|channel|>commentary",
    ],
)
def test_passages_of_reasoning_that_go_on(output: str):
    assert extract(output).text is None


def test_a_benchmarks_pattern_finds_no_answer_in_reasoning():
    last = Answers(("B",), pattern=r"[Aa]nswer: ([A-D])", verbatim=True)
    for output in ("<think>answer: B</think> Answer: A", "answer: B</think>", "<think>answer: B"):
        assert grade(output, last).correct is False
    assert (
        grade("<think>answer: A</think> Answer: B <think>answer: C</think>", last).correct is True
    )
    after = Answers(("7",), pattern=r"</think>\s*(\d+)")
    assert grade("<think>answer 3</think> 7", after).correct is True


REQUESTS = (
    r"I must put the answer in \boxed{}.",
    r"The final answer goes within \boxed{ }.",
    r"I give it as \boxed{answer}.",
    r"Put it in the form \boxed{\text{your final answer}}.",
    r"The format is $\boxed{\ldots}$, they say.",
    r"I use \boxed for the result.",
    r"Within `\boxed{...}` they want it.",
    r"请把最终答案放在\boxed{}中。",
    r"Escribo la respuesta en \boxed{respuesta}.",
)


@given(st.sampled_from(REQUESTS), numbers)
def test_a_recited_request_hides_no_answer(request: str, number: int):
    for said in (
        rf"\boxed{{{number}}}",
        f"6 * 7 = 9, so the answer is {number}.",
        f"#### {number}",
    ):
        assert grade(f"{request} {said}", str(number)).correct is True
        assert grade(f"{request} {said}", str(number + 1)).correct is False
    assert grade(rf"\boxed{{{number}}} {request}", str(number)).correct is True


@pytest.mark.parametrize(
    "output",
    [
        *REQUESTS,
        r"It is 42. \boxed{}",
        r"\boxed{42} fails. \boxed{}",
        r"\boxed{42} fails. So \boxed{",
        r"There are 42 apples. I must put the answer in \boxed{}.",
        r"\boxed{answer}",
    ],
)
def test_a_box_without_an_answer_is_no_answer(output: str):
    assert grade(output, "42").correct is False
