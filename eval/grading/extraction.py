r"""Finds the final answer in a model's output.

In this order: the last `\boxed{}` (or `\fbox{}`), an unclosed last box being no answer; the text
after the last "the answer is" / "答案是" / "####"; the output of the last program, when there is
one; the right side of the equation that ends the text; the last number. The last two are guesses
that also pay for noise, so the verdict names the rule. Text that runs on into a next example after
an answer is cut off first.
"""

import re

from eval.grading.boxes import BOX, boxes_for
from eval.grading.chinese import SPELLED
from eval.grading.verdict import Extraction
from eval.problem import Answers

NEXT_EXAMPLE = re.compile(
    r"\n\s*(?:Q:|Question:|Problem:|User:|Human:|问题[:：]|<\|)|[.。]\s*I hope it is correct"
)
PHRASES = {
    "en": re.compile(
        r"(?:^\s*A:|answer\s+is(?![A-Za-z])|answer\s*:(?!\s*the\s)|answer\s+to\s[^.\n]{1,80}?\sis\s|####)"
        r"\s*[:：]?\s*",
        re.IGNORECASE | re.MULTILINE,
    ),
    "zh": re.compile(r"答案\s*(?:就?是|为|等于|[:：])\s*[:：]?\s*"),
}
FENCE = re.compile(r"```([A-Za-z]*)[^\n`]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
PROGRAM, OUTPUT = {"python", "py"}, "output"
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,/])[-−]?\s?(?:[$￥¥€£]\s?)?"
    r"(?:\d{1,3}(?:[,，]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s?/\s?\d+(?:\.\d+)?)?(?:\s?\\?[%％])?"
    r"|(?<![A-Za-z0-9_.])\.\d+"
)
SENTENCE_END = re.compile(r"(?<!\\)[.!?](?:\s|$)|[。！？\n]")
MATH = re.compile(
    r"\s*(?:\*\*)?\s*(?:\$\$?((?:\\.|[^$\\])+)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL
)
LAST_FORMULA = re.compile(  # of a sentence; a displayed step holds its full stop itself
    r"(?<!\$)(?:\$((?:\\.|[^$\\])*[^$\\.,;\s])\$|\\\(((?:(?!\\[()]).)*[^\\.,;\s])\s*\\\))\s*[.。]?\s*\Z",
    re.DOTALL,
)
EQUALS = re.compile(r"(?<![<>!\\])=|\\approx(?![A-Za-z])|≈")
ONE = Answers(("",))
SENTENCE = re.compile(r"[.!?]\s|[。！？]")
LONGEST = 500  # characters of a formula or a list that are read
LOOP = 40  # characters of the end that are looked for again before it


def extract(output: str, language: str = "en", answers: Answers = ONE) -> Extraction:
    """The final answer of `output`, as the model wrote it.

    Boxes that only `and`, `or` or a comma separates are one answer. Of `answers` it uses which
    boxes count and, when all answers are asked, how many there are.
    """
    plain = "\n" not in output and "I hope" not in output
    text = output if plain else before_next(output, language)
    prose = without_programs(text) if "```" in text else text
    boxed = boxes_for(prose, answers)
    if boxed is not None:
        return boxed
    phrase = after_phrase(prose, language)
    if phrase:
        return Extraction(phrase, "phrase")
    return from_output(text) or last_guess(prose)


def without_programs(text: str) -> str:
    """The text without programs and what they printed: a box in there is not the model's answer."""

    def kept(match: re.Match[str]) -> str:
        return "\n" if match[1].lower() in {*PROGRAM, OUTPUT} else match.group()

    return FENCE.sub(kept, text)


def before_next(text: str, language: str) -> str:
    """The text up to where a next example starts, if an answer was given before that."""
    for mark in NEXT_EXAMPLE.finditer(text):
        head = text[: mark.start() + 1]
        if BOX.search(head) or any(p.search(head) for p in phrases(language)):
            return head
    return text


def phrases(language: str) -> list[re.Pattern[str]]:
    """The phrases looked for: a Chinese text may also use the English one."""
    return [PHRASES["zh"], PHRASES["en"]] if language == "zh" else [PHRASES["en"]]


def after_phrase(text: str, language: str) -> str | None:
    """What follows the last phrase: its first formula, or the rest of its sentence."""
    for pattern in phrases(language):
        found = list(pattern.finditer(text))
        if not found:
            continue
        rest = text[found[-1].end() :]
        formula = MATH.match(rest)
        if formula:
            return next(group for group in formula.groups() if group).strip()
        return SENTENCE_END.split(rest.lstrip(), maxsplit=1)[0].strip(" *") or None
    return None


def from_output(text: str) -> Extraction | None:
    """The last line that the last program printed, when the text has an output block."""
    blocks = [m[2] for m in FENCE.finditer(text) if m[1] == OUTPUT] if "```" in text else []
    lines = blocks[-1].strip().splitlines() if blocks else []
    return Extraction(lines[-1].strip(), "output") if lines else None


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
    """The last number, sign, fraction bar and percent sign included."""
    found = NUMBER.findall(text) or [m.group() for m in SPELLED.finditer(text)]
    return Extraction(found[-1].strip(), "last number") if found else Extraction(None, "none")


def loops(text: str) -> bool:
    """Does the text end in a passage that it keeps repeating, and that holds no whole sentence?"""
    tail = text[-LOOP:]
    before = text[-20 * LOOP : -1]
    if len(tail) < LOOP or before.count(tail) < 2:
        return False
    passage = text[before.rindex(tail) - len(before) - 1 :]
    return SENTENCE.search(passage[:-LOOP]) is None
