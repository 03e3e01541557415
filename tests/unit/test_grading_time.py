"""Grading takes time in proportion to a text, whatever it is made of."""

import gc
import random
import re
from time import process_time

import pytest

from eval.grading import grade, numerals, quantities, scales
from eval.grading.chinese import HAN, WORDS

MOST_S = 0.05  # processor time of one text
RUNS = "a|Zz|ab²|³|\\text|{|}|(|)|一|千|点|分之|.|,|:|\\|’|3|12|1,000|-|%|/|$|=|é|১|\\%|_{|^|答案是"
MARKS = r"\boxed{|\frac{1}{2}|\text {|#### |the answer is |or |and |<think>|</think>|```"
PIECES = [*RUNS.split("|"), *MARKS.split("|"), "|", " ", "\n"]
FORMATS = (
    "[THINK] ◁think▷ <answer> <|channel|>final assistantfinal <|begin_of_ \\boxed{} \\boxed{answer}"
)
NUMBERS = "2万 3千 1,500 ২ লাখ টাকা พัน ドル \\setminus \\ne 半"
REMEMBERING = [
    function
    for module in (numerals, quantities, scales)
    for function in vars(module).values()
    if hasattr(function, "cache_clear")
]
ALL_PIECES = [*PIECES, *FORMATS.split(), *NUMBERS.split()]


@pytest.fixture(autouse=True)
def no_collection():
    """Leave out collections of garbage, whose time is that of all modules of a test process."""
    gc.disable()
    yield
    gc.enable()


def seconds_of(text: str, language: str) -> float:
    """Return the processor time of grading a text that nothing is remembered of."""
    for function in REMEMBERING:
        function.cache_clear()
    start = process_time()
    grade(text, "5", language)
    return process_time() - start


def test_a_sentence_with_one_foreign_letter_and_one_number_has_a_verdict():
    text = "\\boxed{the number of remaining apples inside Mary’s basket is 5}"
    assert grade(text, "5").correct in (True, False)
    assert min(seconds_of(text, "en") for _ in range(3)) < MOST_S


def test_words_around_a_number_are_those_that_a_choice_of_ways_reads():
    slow = re.compile(rf"(?:[{HAN}\s,.:;()¥$~=]|\\text\s*\{{|[{{}}]|[A-Za-z]{{1,3}}[²³]?)*")
    chosen = random.Random(0)
    texts = ["".join(chosen.choices(PIECES, k=chosen.randint(0, 5))) for _ in range(20_000)]
    equal = [bool(slow.fullmatch(t)) == bool(WORDS.fullmatch(t)) for t in texts]
    assert all(equal)
    assert 500 < sum(bool(WORDS.fullmatch(t)) for t in texts) < 19_000


@pytest.mark.long
def test_twenty_thousand_hostile_texts_are_graded_within_a_bound_each():
    """Runs of pieces that patterns repeat, mixed scripts and open braces, up to 100 kB.

    What a machine adds to one call is no part of a text's time: a text is slow if three calls are.
    """
    grade(r"\boxed{\sqrt{9}}", "3")  # starts the worker, which is no part of a verdict
    chosen = random.Random(0)
    sizes = [*[100] * 19_400, *[3_000] * 560, *[100_000] * 40]
    slow = []
    for size in sizes:
        unit = "".join(chosen.choices(ALL_PIECES, k=chosen.randint(1, 4)))
        text = unit * (size // len(unit) + 1) + chosen.choice(["", "’5", " 5", "}"])
        language = chosen.choice(["en", "zh", "fr", "ru"])
        bound = MOST_S * max(1, size / 20_000)
        if all((seconds := seconds_of(text, language)) > bound for _ in range(3)):
            slow.append((round(seconds, 3), size, unit))
    assert not slow
