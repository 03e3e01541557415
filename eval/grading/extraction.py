r"""Finds the final answer in a model's output.

Reasoning and recited requests are cut off first (`parts`, `placeholders`). Then in this order: the
last `\boxed{}` (or `\fbox{}`), an unclosed last box being no answer; what is stated after the last
answer phrase (the phrases are in `phrases`, how a statement is read in `statement`); what the last
program printed; the right side of the equation that ends the text; what the last sentence with a
number states, else its last number. The last two are guesses that also pay for noise, so the
verdict names the rule. Text that runs on into a next example is cut off too.
"""

import re

import regex

from eval.grading.boxes import BOX, boxes_for
from eval.grading.chinese import SPELLED
from eval.grading.notation import in_english
from eval.grading.numerals import read_number
from eval.grading.parts import is_stated, marked_answer, stated_spans, stated_texts
from eval.grading.phrases import CLOSING, CORRECTION, DENIAL, TAKEN_BACK, last_phrase
from eval.grading.placeholders import without_requests
from eval.grading.quantities import DENIED, FORMULA, LAST_NUMBER
from eval.grading.statement import (
    CONCLUSION,
    EQUALS,
    SENTENCE_END,
    first_answer,
    is_answer,
    sentence,
    stated,
)
from eval.grading.verdict import Extraction
from eval.samples.transcripts import is_error
from eval.sets.problem import Answers

NEXT_EXAMPLE = re.compile(  # matches blank lines without a mark too, so each is scanned once
    r"\n\s*+(?P<mark>Q:|Question:|Problem:|User:|Human:|问题[:：]|<\||)"
    r"|[.。]\s*+(?P<hope>I hope it is correct)"
)
FENCE = re.compile(r"```([A-Za-z]*+)[^\n`]*+\n(.*?)(?:\n?```|\Z)", re.DOTALL)
PROGRAM, OUTPUT = {"python", "py"}, "output"
LAST_FORMULA = re.compile(  # of a sentence; a displayed step holds its full stop itself
    r"(?<!\$)(?:\$((?:\\.|[^$\\])*[^$\\.,;\s])\$|\\\(((?:(?!\\[()]).)*[^\\.,;\s])\s*\\\))\s*[.。]?\s*\Z",
    re.DOTALL,
)
ONE = Answers(("",))
NOTHING = Extraction(None, "none")
GUESSES = ("last formula", "last number", "none")
SENTENCE = re.compile(r"[.!?]\s|[。！？]")
LONGEST = 500  # characters of a formula that are read
STATED = 2000  # characters of a statement, and before it, that are read
PATTERN_S = 1.0  # seconds that a pattern may search one output
LOOP = 40  # characters of the end that are looked for again before it


def extract(output: str, language: str = "en", answers: Answers = ONE) -> Extraction:
    """The final answer of `output`, as the model wrote it but for the notation of its numbers.

    Boxes that only `and`, `or` or a comma separates are one answer. Of `answers` it uses which
    boxes count and, when all answers are asked, how many there are; or the pattern of an answer.
    """
    if answers.pattern is not None:
        return by_pattern(output, answers.pattern)
    found = NOTHING
    for text in stated_texts(output):
        found = from_text(text, language, answers)
        if found.rule not in GUESSES:
            break
    return found


def from_text(stated: str, language: str, answers: Answers) -> Extraction:
    """The final answer of a text without reasoning."""
    english = in_english(stated, language)
    plain = "\n" not in english and "I hope" not in english
    text = marked_answer(english if plain else before_next(english, language))
    prose, after = without_requests(without_programs(text) if "```" in text else text)
    boxed = boxes_for(prose, answers)
    if boxed is not None:
        return boxed
    return after_phrase(prose, language) or from_output(text) or last_guess(prose[after:])


def by_pattern(output: str, pattern: str) -> Extraction:
    """The last match of a benchmark's own pattern, or the first group of it, in no reasoning.

    A pattern may take exponential time, so that it has a deadline.
    """
    spans = stated_spans(output)
    try:
        matches = list(regex.finditer(pattern, output, timeout=PATTERN_S))
    except TimeoutError:
        return Extraction(None, "timeout")
    group = 1 if matches and matches[-1].groups() else 0
    found = [m for m in matches if is_stated(max(m.start(), m.start(group)), spans)]
    if not found:
        return Extraction(None, "none")
    return Extraction(found[-1][group] or None, "pattern")


def without_programs(text: str) -> str:
    """The text without programs and what they printed: a box in there is not the model's answer."""

    def kept(match: re.Match[str]) -> str:
        return "\n" if match[1].lower() in {*PROGRAM, OUTPUT} else match.group()

    return FENCE.sub(kept, text)


def before_next(text: str, language: str) -> str:
    """The text up to where a next example starts, if an answer was given before that.

    An example that only begins ends any text.
    """
    for mark in NEXT_EXAMPLE.finditer(text):
        if not (mark["mark"] or mark["hope"]):
            continue
        head = text[: mark.start() + 1]
        if not text[mark.end() :].strip() or BOX.search(head) or last_phrase(head, language):
            return head
    return text


def after_phrase(text: str, language: str) -> Extraction | None:
    """What is stated after the last phrase: in its sentence, or in all that follows a colon."""
    found = last_phrase(text, language)
    if found is None:
        return None
    phrase = found.group().rstrip(" *\n")
    rest = text[found.end() :][:STATED].rstrip(CLOSING).replace("**", "")
    correction = CORRECTION.search(rest)
    if correction:
        corrected = stated(rest[correction.end() :])
        if corrected is not None or TAKEN_BACK.search(rest, correction.end()):
            return Extraction(corrected or None, "phrase")
    denied = bool(DENIAL.search(phrase) or DENIED.search(text[: found.start()][-40:]))
    first = None if denied else first_answer(rest)
    whole = rest if phrase.endswith((":", "：")) else sentence(rest)
    said = f"not {whole}" if denied else whole
    answer = first or stated(said, text[: found.start()][-STATED:])
    if first and "=" in first and read_number(first) is None and CONCLUSION.search(whole):
        answer = stated(whole) or first  # of an equation that is followed by what it is for
    if answer is None:  # no number at all
        answer = sentence(rest)
        return Extraction(answer, "phrase") if answer else None
    return Extraction(answer or None, "phrase")


def from_output(text: str) -> Extraction | None:
    """What the last line states that the last program printed, when there is an output block."""
    blocks = [m[2] for m in FENCE.finditer(text) if m[1] == OUTPUT] if "```" in text else []
    lines = blocks[-1].strip().splitlines() if blocks else []
    if not lines:
        return None
    line = lines[-1].strip()
    said = None if is_error(blocks[-1]) or is_answer(line) else stated(line)
    return Extraction(said or line, "output")


def last_guess(text: str) -> Extraction:
    """What a text that marks no answer ends with: an equation's right side, or its last number.

    None for a text that ends in a question, or in a formula that it keeps repeating.
    """
    if text.rstrip().endswith(("?", "？")) or loops(text):
        return Extraction(None, "none")
    formula = LAST_FORMULA.search(text[-LONGEST:])
    sides = EQUALS.split(formula[1] or formula[2]) if formula else []
    if len(sides) > 1:  # a formula without a sign of equality may be what the question asks for
        return Extraction(sides[-1].strip() or None, "last formula")
    return last_number(text)


def last_number(text: str) -> Extraction:
    """What the last sentence with a number states, if it is prose alone, else its last number."""
    found = [m["number"].strip() for m in LAST_NUMBER.finditer(text) if m["number"]]
    found = found or [m.group().strip() for m in SPELLED.finditer(text)]
    end = text.rfind(found[-1]) if found else len(text.rstrip(" .!\n"))
    starts = [m.end() for m in SENTENCE_END.finditer(text, 0, end)]
    start = starts[-1] if starts else 0
    last = text[start:][:STATED]
    plain = "\\" not in last and not FORMULA.search(last)
    said = stated(last, text[:start][-STATED:]) if plain else None
    answer = said or (found[-1] if found else None)
    return Extraction(answer, "last number" if answer else "none")


def loops(text: str) -> bool:
    """Does the text end in a passage that it keeps repeating, and that holds no whole sentence?"""
    tail = text[-LOOP:]
    before = text[-20 * LOOP : -1]
    if len(tail) < LOOP or before.count(tail) < 2:
        return False
    passage = text[before.rindex(tail) - len(before) - 1 :]
    return SENTENCE.search(passage[:-LOOP]) is None
