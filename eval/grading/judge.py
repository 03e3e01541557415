"""Compares an output's answer with the reference: plain numbers exactly, the rest symbolically."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any  # what a worker answers

from eval.grading.cleaning import clean
from eval.grading.extraction import extract
from eval.grading.limited import each_limited
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
    found = each_limited(extract, list(zip(outputs, each, asked, strict=True)), decoded)
    readings = [Extraction(None, one) if isinstance(one, str) else one for one in found]
    pairs = [list(pairs_of(r, a)) for r, a in zip(readings, asked, strict=True)]
    compared = compare_pairs(pair for few in pairs for pair in few)
    exact = [pair for few, a in zip(pairs, asked, strict=True) if a.exact_form for pair in few]
    formed = compare_forms(exact, compared)
    return [
        verdict(r, a, formed if a.exact_form else compared)
        for r, a in zip(readings, asked, strict=True)
    ]


def pairs_of(found: Extraction, asked: Answers) -> Iterator[Pair]:
    """Yield each right answer with each extracted text; none if they are compared as texts."""
    for text in (found.text, *found.parts):
        if text is not None and not asked.verbatim:
            yield from ((right, text) for right in asked.right)


def decoded(fields: dict[str, Any]) -> Extraction:
    """An extraction from the fields that a worker answers."""
    return Extraction(fields["text"], fields["rule"], tuple(fields["parts"]))


def compare_pairs(pairs: Iterable[Pair]) -> Compared:
    """Every pair once: by text and number where they decide, the others by the workers."""
    decided: Compared = {}
    slow: list[Pair] = []
    each = list(dict.fromkeys(pairs))
    for pair, found in zip(each, each_limited(quickly, each, tuple), strict=True):
        if found is None:
            slow.append(pair)
        else:
            decided[pair] = (found, REASONS[found]) if isinstance(found, str) else found
    for pair, outcome in zip(slow, compare_all(slow), strict=True):
        decided[pair] = outcome, REASONS[outcome]
    return decided


def compare_forms(pairs: Iterable[Pair], compared: Compared) -> Compared:
    """The pairs, of which those that are equal and not written alike are wrong."""
    formed = {pair: compared[pair] for pair in pairs}
    equal = [pair for pair, (outcome, _) in formed.items() if outcome is True]
    for pair, alike in zip(equal, each_limited(written_alike, equal, bool), strict=True):
        if alike is False:
            formed[pair] = False, "equal, not in the form asked for"
        elif alike is not True:
            formed[pair] = alike, REASONS[alike]
    return formed


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
        outcomes = [
            same_text(right, text) if asked.verbatim else compared[right, text]
            for right in asked.right
        ]
        return min(outcomes, key=lambda o: (o[0] is not True, o[0] is False))

    if found.text is None and found.rule in ("timeout", "error"):
        return Verdict(None, None, found.rule, REASONS[found.rule])
    if found.text is None:
        return Verdict(False, None, found.rule, "no answer")
    outcome, reason = best(found.text)
    if found.parts and all(best(part)[0] is True for part in found.parts):
        outcome, reason = True, "each box is right"
    given = found.text[:MAX_ANSWER]
    if not isinstance(outcome, bool):
        return Verdict(None, given, outcome, reason)
    return Verdict(outcome, given, found.rule, reason)


def same_text(right: str, given: str) -> tuple[Outcome, str]:
    """The outcome of a verbatim answer."""
    same = right.strip().casefold() == given.strip().casefold()
    return same, "same text" if same else "other text"
