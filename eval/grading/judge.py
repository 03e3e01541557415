"""Compares an output's answer with the reference: plain numbers exactly, the rest symbolically."""

from collections.abc import Iterable, Sequence

from eval.grading.cleaning import clean
from eval.grading.extraction import extract
from eval.grading.numerals import read_number, same_number
from eval.grading.verdict import Extraction, Verdict
from eval.grading.worker import Outcome, compare_all
from eval.grading.written import written_alike
from eval.sets.problem import Answers

GRADER_VERSION = "5"  # in every record and key of an evaluation; another one when a verdict moves
MAX_ANSWER = 500  # characters of an answer that are still compared
REASONS: dict[Outcome, str] = {
    True: "equal",
    False: "not equal",
    "timeout": "no verdict within the deadline",
    "error": "not comparable",
}

Pair = tuple[str, str]  # a reference answer and a given one
Compared = dict[Pair, tuple[Outcome, str]]  # the outcome and its reason


def grade(output: str, answer: str | Answers, language: str = "en") -> Verdict:
    """The verdict on `output` against the reference `answer`; never evaluates the text."""
    return grade_many([output], [answer], language)[0]


def grade_many(
    outputs: Sequence[str],
    answers: Sequence[str | Answers],
    languages: Iterable[str] | str = "en",
) -> list[Verdict]:
    """The verdict on each output, in order; what needs a parser goes to the workers at once.

    Raises:
        ValueError: if there are not as many answers and languages as outputs.
    """
    each = [languages] * len(outputs) if isinstance(languages, str) else list(languages)
    asked = [Answers((a,)) if isinstance(a, str) else a for a in answers]
    found = [
        extract(output, language, answer)
        for output, language, answer in zip(outputs, each, asked, strict=True)
    ]
    compared = compare_pairs(
        (right, text)
        for extraction, answer in zip(found, asked, strict=True)
        if not answer.verbatim
        for right in answer.right
        for text in (extraction.text, *extraction.parts)
        if text is not None
    )
    return [verdict(f, a, compared) for f, a in zip(found, asked, strict=True)]


def compare_pairs(pairs: Iterable[Pair]) -> Compared:
    """Every pair once: by text and number where they decide, the others by the workers."""
    decided: Compared = {}
    slow: list[Pair] = []
    for pair in dict.fromkeys(pairs):
        found = quickly(*pair)
        if found is None:
            slow.append(pair)
        else:
            decided[pair] = found
    for pair, outcome in zip(slow, compare_all(slow), strict=True):
        decided[pair] = outcome, REASONS[outcome]
    return decided


def quickly(answer: str, given: str) -> tuple[Outcome, str] | None:
    """The outcome where texts or plain numbers decide; None where a parser is needed."""
    if given == answer:
        return True, "same text"
    if len(given) > MAX_ANSWER:
        return False, "answer too long"
    gold_number = read_number(answer)
    given_number = read_number(given)
    if gold_number is not None and given_number is not None:
        same = same_number(gold_number, given_number)
        return same, "equal numbers" if same else "other number"
    return (True, "same notation") if clean(given) == clean(answer) else None


def verdict(found: Extraction, asked: Answers, compared: Compared) -> Verdict:
    """Right when the whole is one of the right answers, or when each of its boxes is one."""

    def best(text: str) -> tuple[Outcome, str]:
        outcomes = [in_form(asked, (right, text), compared) for right in asked.right]
        return min(outcomes, key=lambda o: (o[0] is not True, o[0] is False))

    if found.text is None and found.rule == "timeout":
        return Verdict(None, None, found.rule, REASONS["timeout"])
    if found.text is None:
        return Verdict(False, None, found.rule, "no answer")
    outcome, reason = best(found.text)
    if found.parts and all(best(part)[0] is True for part in found.parts):
        outcome, reason = True, "each box is right"
    given = found.text[:MAX_ANSWER]
    if not isinstance(outcome, bool):
        return Verdict(None, given, outcome, reason)
    return Verdict(outcome, given, found.rule, reason)


def in_form(asked: Answers, pair: Pair, compared: Compared) -> tuple[Outcome, str]:
    """The outcome of a pair; where the question asks for a form, another one is wrong."""
    if asked.verbatim:
        same = pair[0].strip().casefold() == pair[1].strip().casefold()
        return same, "same text" if same else "other text"
    outcome, reason = compared[pair]
    if outcome is True and asked.exact_form and not written_alike(*pair):
        return False, "equal, not in the form asked for"
    return outcome, reason
