"""Grades an output against the reference: plain numbers exactly, other answers symbolically."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import regex

from eval.grading.choices import choice_letter
from eval.grading.cleaning import clean
from eval.grading.contradictions import contradict
from eval.grading.extraction import PATTERN_S, extract
from eval.grading.limited import each_limited
from eval.grading.numerals import read_number, same_number
from eval.grading.verdict import Extraction, Verdict
from eval.grading.worker import Json, Outcome, compare_all
from eval.grading.written import written_alike
from eval.sets.problem import Answers

GRADER_VERSION = "5"  # in every record and key of an evaluation; changed if any verdict changes
MAX_ANSWER = 500  # characters of an answer that are still compared
LONGEST_CHOICE = 20  # characters of a reference answer that is the letter of a choice
REASONS: dict[Outcome, str] = {
    True: "equal",
    False: "not equal",
    "timeout": "no verdict within the deadline",
    "error": "not comparable",
}

Pair = tuple[str, str]  # a reference answer and the answer of an output
Compared = dict[Pair, tuple[Outcome, str]]  # the outcome and its reason


def grade(output: str, answer: str | Answers, language: str = "en") -> Verdict:
    """Grade an output against the reference `answer`; its text is never evaluated."""
    return grade_many([output], [answer], language)[0]


def grade_many(
    outputs: Sequence[str],
    answers: Sequence[str | Answers],
    languages: Iterable[str] | str = "en",
) -> list[Verdict]:
    """Grade each output against its reference answer, in order; faster than one by one.

    The comparisons that need a parser run in parallel in worker processes.

    Raises:
        ValueError: if there are not as many answers and languages as outputs.
    """
    language_list = [languages] * len(outputs) if isinstance(languages, str) else list(languages)
    references = [Answers((a,)) if isinstance(a, str) else a for a in answers]
    extractions = extract_all(outputs, language_list, references)
    pairs = [list(pairs_of(e, r)) for e, r in zip(extractions, references, strict=True)]
    compared = compare_pairs(chain.from_iterable(pairs))
    exact = [few for few, r in zip(pairs, references, strict=True) if r.exact_form]
    compared_forms = compare_forms(chain.from_iterable(exact), compared)
    return [
        verdict(e, r, compared_forms if r.exact_form else compared)
        for e, r in zip(extractions, references, strict=True)
    ]


def extract_all(
    outputs: Sequence[str], languages: Sequence[str], references: Sequence[Answers]
) -> list[Extraction]:
    """Extract the answer of each output within the time limit.

    The text of an extraction that was not finished is None, and its rule "timeout" or "error".
    """
    items = list(zip(outputs, languages, references, strict=True))
    extractions = each_limited(extract, items, decode_extraction)
    return [Extraction(None, e) if isinstance(e, str) else e for e in extractions]


def pairs_of(extraction: Extraction, reference: Answers) -> Iterator[Pair]:
    """Yield each accepted answer with each extracted text; nothing if these need no comparison."""
    for text in (extraction.text, *extraction.parts):
        if text is not None and not reference.verbatim and reference.counts != "whole":
            yield from ((gold, text) for gold in reference.accepted_texts)


def decode_extraction(fields: Json) -> Extraction:
    """Convert the JSON of a worker to an extraction."""
    return Extraction(fields["text"], fields["rule"], tuple(fields["parts"]))


def compare_pairs(pairs: Iterable[Pair]) -> Compared:
    """Compare each distinct pair: by text and number where they decide, else in the workers."""
    decided: Compared = {}
    slow: list[Pair] = []
    distinct = list(dict.fromkeys(pairs))
    comparisons = each_limited(compare_without_parser, distinct, tuple)
    for pair, comparison in zip(distinct, comparisons, strict=True):
        if comparison is None:
            slow.append(pair)
        elif isinstance(comparison, str):
            decided[pair] = comparison, REASONS[comparison]
        else:
            decided[pair] = comparison
    for pair, outcome in zip(slow, compare_all(slow), strict=True):
        decided[pair] = outcome, REASONS[outcome]
    return decided


def compare_forms(pairs: Iterable[Pair], compared: Compared) -> Compared:
    """Return the comparisons of pairs with those equal but of another form graded as wrong."""
    with_forms = {pair: compared[pair] for pair in pairs}
    equal = [pair for pair, (outcome, _) in with_forms.items() if outcome is True]
    for pair, alike in zip(equal, each_limited(written_alike, equal, bool), strict=True):
        if alike is False:
            with_forms[pair] = False, "equal, not in the form asked for"
        elif alike is not True:
            with_forms[pair] = alike, REASONS[alike]
    return with_forms


def compare_without_parser(gold: str, prediction: str) -> tuple[Outcome, str] | None:
    """Compare two answers as texts or plain numbers; return None if a parser is needed."""
    if prediction == gold:
        return True, "same text"
    if len(prediction) > MAX_ANSWER:
        return False, "answer too long"
    if contradict(gold, prediction):
        return False, "other variable or half of the day"
    gold_number = read_number(gold)
    predicted_number = read_number(prediction)
    if gold_number is not None and predicted_number is not None:
        is_equal = same_number(gold_number, predicted_number)
        return is_equal, "equal numbers" if is_equal else "other number"
    if clean(prediction) == clean(gold):
        return True, "same notation"
    letter = choice_letter(gold) if len(gold) <= LONGEST_CHOICE else None
    return (True, "same choice") if letter and letter == choice_letter(prediction) else None


def verdict(extraction: Extraction, reference: Answers, compared: Compared) -> Verdict:
    """Return the verdict on an extraction: right if it, or each of its boxes, is accepted."""
    text = extraction.text
    if text is None and extraction.rule in ("timeout", "error"):
        return Verdict(None, None, extraction.rule, REASONS[extraction.rule])
    if text is None:
        return Verdict(False, None, extraction.rule, "no answer")
    outcome, reason = best_outcome(text, reference, compared)
    parts = (best_outcome(part, reference, compared)[0] for part in extraction.parts)
    if extraction.parts and all(outcome is True for outcome in parts):
        outcome, reason = True, "each box is right"
    if not isinstance(outcome, bool):
        return Verdict(None, text[:MAX_ANSWER], outcome, reason)
    return Verdict(outcome, text[:MAX_ANSWER], extraction.rule, reason)


def best_outcome(text: str, reference: Answers, compared: Compared) -> tuple[Outcome, str]:
    """Return the best outcome of a text over the accepted answers: true, undecided, then false."""
    if reference.counts == "whole":
        outcomes = [full_match(pattern, text) for pattern in reference.texts]
    elif reference.verbatim:
        outcomes = [same_text(gold, text) for gold in reference.accepted_texts]
    else:
        outcomes = [compared[gold, text] for gold in reference.accepted_texts]
    return min(outcomes, key=lambda o: (o[0] is not True, o[0] is False))


def full_match(pattern: str, text: str) -> tuple[Outcome, str]:
    """Match a whole text with a regular expression, within a deadline."""
    try:
        matches = regex.fullmatch(pattern, text, timeout=PATTERN_S) is not None
    except TimeoutError:
        return "timeout", REASONS["timeout"]
    return matches, "matches" if matches else "does not match"


def same_text(gold: str, prediction: str) -> tuple[Outcome, str]:
    """Compare verbatim answers, regardless of case."""
    is_equal = gold.strip().casefold() == prediction.strip().casefold()
    return is_equal, "same text" if is_equal else "other text"
