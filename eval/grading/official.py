r"""Grades outputs by the rules that the authors of a benchmark published with it.

- `gsm8k`: the first `#### N`, without commas, as text (openai/grade-school-math).
- `math`: the last box, by `math_equivalence.is_equiv` (hendrycks/math).
- `mgsm`: the last number after the last "Answer" of the language, as text (openai/simple-evals).
- `cmath`: one of the last two numbers, within 1 % (XiaoMi/cmath).

These scores are comparable with the ones that the authors print. They count no other notation of
the same number (`gsm8k`, `math`), and accept wrong answers (`cmath`).
"""

import re
from collections.abc import Callable, Mapping, Sequence

from eval.errors import UnknownName
from eval.grading.boxes import last_box
from eval.grading.limited import each_limited
from eval.grading.official_cmath import grade_cmath
from eval.grading.official_math import is_equivalent
from eval.grading.verdict import Verdict
from eval.sets.problem import Problem

Rule = Callable[[str, Problem], Verdict]
HASHES = re.compile(r"#### (-?[0-9.,]+)")
NUMBER = re.compile(r"\d+\.?\d*")
PREFIXES = {
    "bn": "উত্তর",
    "de": "Antwort",
    "en": "Answer",
    "es": "Respuesta",
    "fr": "Réponse",
    "ja": "答え",
    "ru": "Ответ",
    "sw": "Jibu",
    "te": "సమాధానం",
    "th": "คำตอบ",
    "zh": "答案",
}


def grade_officially(
    outputs: Sequence[str], problems: Sequence[Problem], rule: str
) -> list[Verdict]:
    """Return the verdict of a benchmark's own rule on each output, within the time limit.

    `correct` is None for the error replies that CMATH leaves out of its accuracy, and for outputs
    that could not be read in time.

    Args:
        outputs: of models.
        problems: that they answer, in the same order.
        rule: a name in `RULES`.

    Raises:
        UnknownName: there is no such rule.
        ValueError: there are not as many problems as outputs.
    """
    if rule not in RULES:
        raise UnknownName("official rule", rule, RULES)
    tasks = [
        (rule, output, problem.answer, problem.language)
        for output, problem in zip(outputs, problems, strict=True)
    ]
    verdicts = each_limited(official_fields, tasks, tuple)
    return [
        Verdict(None, None, v, "not read in time") if isinstance(v, str) else Verdict(*v)
        for v in verdicts
    ]


def official_accuracy(correct: Sequence[bool | None]) -> float | None:
    """Return the share of right replies among those that are no errors (None); None without any."""
    counted = [is_right for is_right in correct if is_right is not None]
    return sum(counted) / len(counted) if counted else None


def official_fields(
    rule: str, output: str, answer: str, language: str
) -> tuple[bool | None, str | None, str, str]:
    """Return the fields of the verdict of a rule on one output."""
    problem = Problem(id="", question="", answer=answer, language=language)
    v = RULES[rule](output, problem)
    return v.correct, v.extracted, v.rule, v.reason


def grade_gsm8k(output: str, problem: Problem) -> Verdict:
    """Compare the text after the first `#### ` with the reference, both without commas."""
    match = HASHES.search(output)
    answer = match and match[1].strip().replace(",", "")
    return same_text(answer, problem.answer.replace(",", ""), "####")


def grade_math(output: str, problem: Problem) -> Verdict:
    """Compare the content of the last box with the reference by `is_equivalent`."""
    box = last_box(output)
    if box is None or box.text is None:
        return Verdict(False, None, "boxed", "no answer")
    is_equal = is_equivalent(box.text, problem.answer)
    return Verdict(is_equal, box.text, "boxed", f"{'equal' if is_equal else 'other'} normal form")


def grade_mgsm(output: str, problem: Problem) -> Verdict:
    """Compare the last number after the last answer prefix of the language with the reference."""
    answer = mgsm_answer(output, problem.language)
    shortened = answer.rstrip("0").rstrip(".") if "." in answer else answer
    return same_text(shortened or None, problem.answer.replace(",", ""), "prefix")


def mgsm_answer(output: str, language: str) -> str:
    """Return the last number after the last answer prefix, without sign and commas; "" if none."""
    _, prefix, rest = output.rpartition(PREFIXES[language])
    numbers = NUMBER.findall(rest.replace(",", "")) if prefix else []
    return numbers[-1].rstrip(".") if numbers else ""


def same_text(answer: str | None, reference: str, rule: str) -> Verdict:
    """Return the verdict of comparing two texts; wrong without an answer."""
    if answer is None:
        return Verdict(False, None, rule, "no answer")
    is_equal = answer == reference
    return Verdict(is_equal, answer, rule, "same text" if is_equal else "other text")


RULES: Mapping[str, Rule] = {
    "cmath": lambda output, problem: grade_cmath(output, problem.answer),
    "gsm8k": grade_gsm8k,
    "math": grade_math,
    "mgsm": grade_mgsm,
}
