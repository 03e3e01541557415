r"""Extracts the final answer of an output.

Reasoning and recited requests are removed first (`parts`, `placeholders`), and so is a next example
that the model begins. The answer is then, in this order: the last `\boxed{}` or `\fbox{}` (an
unclosed last box is no answer); the statement after the last answer phrase (`phrases`,
`statement`); the output of the last program; the right side of an equation at the end; the number
that the last sentence with a number states, else the last number. The last two rules are guesses
that also reward noise, so a verdict names its rule.
"""

import re

import regex

from eval.grading.boxes import BOX, boxes_for
from eval.grading.chinese import SPELLED
from eval.grading.choices import ask_for_choice, stated_choice
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
    stated_answer,
)
from eval.grading.verdict import Extraction
from eval.samples.transcripts import is_error
from eval.sets.problem import Answers

NEXT_EXAMPLE = re.compile(  # also matches blank lines without a mark, to scan each once
    r"\n\s*+(?P<mark>Q:|Question:|Problem:|User:|Human:|问题[:：]|<\||)"
    r"|[.。]\s*+(?P<hope>I hope it is correct)"
)
FENCE = re.compile(r"```([A-Za-z]*+)[^\n`]*+\n(.*?)(?:\n?```|\Z)", re.DOTALL)
PROGRAM, OUTPUT = {"python", "py"}, "output"
LAST_FORMULA = re.compile(  # of a sentence; a displayed step includes its full stop
    r"(?<!\$)(?:\$((?:\\.|[^$\\])*[^$\\.,;\s])\$|\\\(((?:(?!\\[()]).)*[^\\.,;\s])\s*\\\))\s*[.。]?\s*\Z",
    re.DOTALL,
)
JSON_VALUE = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s",}\]]++))', re.DOTALL)
ONE = Answers(("",))
NOTHING = Extraction(None, "none")
GUESSES = ("last formula", "last number", "none")
SENTENCE = re.compile(r"[.!?]\s|[。！？]")
LONGEST = 500  # characters of a formula that are read
STATED = 2000  # characters of a statement, and before it, that are read
PATTERN_S = 1.0  # seconds that a pattern may search one output
OPENING, WHOLE = "\\boxed{", "whole output"
LOOP = 40  # characters of the end that are searched for in the text before


def extract(output: str, language: str = "en", answers: Answers = ONE) -> Extraction:
    """Return the final answer of `output` as written, but with numbers in English notation.

    Boxes that only `and`, `or` or a comma separates are one answer. `answers` decides which boxes
    count, how many answers are required, or the pattern of an answer. If the whole output counts,
    it is returned unchanged, or without a box around all of it.
    """
    if answers.counts == "whole":
        return Extraction(
            output.removeprefix(OPENING)[:-1] if is_one_box(output) else output, WHOLE
        )
    if answers.pattern is not None:
        return extract_by_pattern(output, answers.pattern)
    extraction = NOTHING
    for text in stated_texts(output):
        extraction = extract_from_text(text, language, answers)
        if extraction.rule not in GUESSES:
            break
    return extraction


def is_one_box(output: str) -> bool:
    """Return whether an output is a box and nothing else, as stored samples without texts are."""
    return output.startswith(OPENING) and output.endswith("}")


def extract_from_text(text: str, language: str, answers: Answers) -> Extraction:
    """Return the final answer of a text without reasoning."""
    english = in_english(text, language)
    plain = "\n" not in english and "I hope" not in english
    answer_text = marked_answer(english if plain else before_next(english, language))
    prose, after = without_requests(
        without_programs(answer_text) if "```" in answer_text else answer_text
    )
    boxed = boxes_for(prose, answers)
    if boxed is not None:
        return boxed
    letter = stated_choice(prose[after:]) if ask_for_choice(answers) else None
    if letter is not None:
        return Extraction(letter, "phrase")
    return (
        extract_after_phrase(prose, language)
        or extract_from_program_output(answer_text)
        or guess_from_ending(prose[after:])
    )


def extract_by_pattern(output: str, pattern: str) -> Extraction:
    """Return the last match of a pattern outside of reasoning, or its first group if it has groups.

    The search has a deadline, because a pattern may take exponential time.
    """
    spans = stated_spans(output)
    try:
        matches = list(regex.finditer(pattern, output, timeout=PATTERN_S))
    except TimeoutError:
        return Extraction(None, "timeout")
    group = 1 if matches and matches[-1].groups() else 0
    stated = [m for m in matches if is_stated(max(m.start(), m.start(group)), spans)]
    if not stated:
        return Extraction(None, "none")
    return Extraction(stated[-1][group] or None, "pattern")


def without_programs(text: str) -> str:
    """Remove programs and their outputs from a text: a box in them is not the model's answer."""

    def strip_program(match: re.Match[str]) -> str:
        return "\n" if match[1].lower() in {*PROGRAM, OUTPUT} else match.group()

    return FENCE.sub(strip_program, text)


def before_next(text: str, language: str) -> str:
    """Return the text before a next example that follows an answer, else the whole text.

    An example that breaks off right after its mark ends the text even without an answer before.
    """
    for mark in NEXT_EXAMPLE.finditer(text):
        if not (mark["mark"] or mark["hope"]):
            continue
        head = text[: mark.start() + 1]
        if not text[mark.end() :].strip() or BOX.search(head) or last_phrase(head, language):
            return head
    return text


def extract_after_phrase(text: str, language: str) -> Extraction | None:
    """Return the answer stated after the last answer phrase; None without such a phrase."""
    match = last_phrase(text, language)
    if match is None:
        return None
    rest = text[match.end() :][:STATED].rstrip(CLOSING).replace("**", "")
    following = json_value(rest) if '"' in match.group() else without_fence(rest)
    correction = extract_correction(following)
    if correction is not None:
        return correction
    answer = answer_of_phrase(match.group().rstrip(" *\n"), following, text[: match.start()])
    if answer is None:  # no number at all
        answer = sentence(following)
        return Extraction(answer, "phrase") if answer else None
    return Extraction(answer or None, "phrase")


def json_value(text: str) -> str:
    """Return the content of the text or number of JSON that a text begins with."""
    value = JSON_VALUE.match(text)
    return text if value is None else (value[1] or value[2] or "").replace("\\\\", "\\")


def without_fence(text: str) -> str:
    """Return the content of the code block that a text begins with; else the text."""
    block = FENCE.match(text.lstrip()) if text.lstrip().startswith("```") else None
    return block[2] if block and block[2].strip() else text


def extract_correction(following: str) -> Extraction | None:
    """Return the corrected answer in the text after an answer phrase; None without a correction.

    The answer itself is None if the text only takes its first answer back.
    """
    correction = CORRECTION.search(following)
    if correction is None:
        return None
    corrected = stated_answer(following[correction.end() :])
    if corrected is None and not TAKEN_BACK.search(following, correction.end()):
        return None
    return Extraction(corrected or None, "phrase")


def answer_of_phrase(phrase: str, following: str, before: str) -> str | None:
    """Return the answer in the text after an answer phrase, see `stated_answer`.

    The answer is in the sentence of the phrase, or anywhere after a phrase that ends in a colon.
    """
    statement = following if phrase.endswith((":", "：")) else sentence(following)
    if DENIAL.search(phrase) or DENIED.search(before[-40:]):
        return stated_answer(f"not {statement}", before[-STATED:])
    first = first_answer(following)
    if not first:
        return stated_answer(statement, before[-STATED:])
    if "=" in first and read_number(first) is None and CONCLUSION.search(statement):
        return stated_answer(statement) or first  # an equation, then the conclusion from it
    return first


def extract_from_program_output(text: str) -> Extraction | None:
    """Return the answer in the last line of the last output block; None without such a line.

    It is the answer stated in the line. It is the whole line if the line states none or is an
    answer itself, or if the block is an error message.
    """
    blocks = [m[2] for m in FENCE.finditer(text) if m[1] == OUTPUT] if "```" in text else []
    lines = blocks[-1].strip().splitlines() if blocks else []
    if not lines:
        return None
    line = lines[-1].strip()
    stated = None if is_error(blocks[-1]) or is_answer(line) else stated_answer(line)
    return Extraction(stated or line, "output")


def guess_from_ending(text: str) -> Extraction:
    """Return the right side of an equation that ends the text, else its last number.

    The answer is None for a text that ends in a question or in a repeated passage.
    """
    if text.rstrip().endswith(("?", "？")) or ends_in_loop(text):
        return Extraction(None, "none")
    formula = LAST_FORMULA.search(text[-LONGEST:])
    sides = EQUALS.split(formula[1] or formula[2]) if formula else []
    if len(sides) > 1:  # a formula without a sign of equality may be what the question asks for
        return Extraction(sides[-1].strip() or None, "last formula")
    return guess_last_number(text)


def guess_last_number(text: str) -> Extraction:
    """Return the answer that the last sentence with a number states, else the last number.

    A sentence with formulas or LaTeX states no answer.
    """
    number = last_number(text)
    end = text.rfind(number) if number else len(text.rstrip(" .!\n"))
    (*_, before) = (None, *SENTENCE_END.finditer(text, 0, end))
    start = before.end() if before else 0
    last = text[start:][:STATED]
    is_prose = "\\" not in last and not FORMULA.search(last)
    stated = stated_answer(last, text[:start][-STATED:]) if is_prose else None
    answer = stated or number
    return Extraction(answer, "last number" if answer else "none")


def last_number(text: str) -> str | None:
    """Return the last number of a text in digits, else the last one in Chinese numerals."""
    numbers = [m["number"].strip() for m in LAST_NUMBER.finditer(text) if m["number"]]
    numbers = numbers or [m.group().strip() for m in SPELLED.finditer(text)]
    return numbers[-1] if numbers else None


def ends_in_loop(text: str) -> bool:
    """Return whether a text ends in a passage that it repeats and that is no whole sentence."""
    tail = text[-LOOP:]
    before = text[-20 * LOOP : -1]
    if len(tail) < LOOP or before.count(tail) < 2:
        return False
    passage = text[before.rindex(tail) - len(before) - 1 :]
    return SENTENCE.search(passage[:-LOOP]) is None
