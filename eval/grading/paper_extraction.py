r"""Extracts and normalises answers by the rules of DeepSeekMath's published evaluation code.

They are reimplemented with their faults, so that scores are comparable with the paper's: an
unclosed box gives no answer, `16 hours` after the phrase keeps its unit, `\mbox{...}` is deleted.
Source: deepseek-ai/DeepSeek-Math, `evaluation/data_processing/answer_extraction.py`.
"""

import re
from typing import Literal

Part = Literal["answer", "few-shot", "program"]

LAST_NUMBER = re.compile(r"-?\d*\.?\d+")
FEW_SHOT_NUMBER = re.compile(r"-?\d+\.?\d*")  # stops at a comma: 1,000 is read as 000
AND = re.compile(r"\\text\{\s*and\s*\}")
LONGEST = 500  # characters of an answer that are still compared

ROWS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\n", ""),
        (r"\.+$", ""),
        (r"\\!", ""),
        (r"^\\text\{(.*)\}$", r"\1"),
        (r"[tdc]frac", "frac"),
        (r"\\left|\\right", ""),
        (r"(?<=.)\\text\{.*?\}$", ""),  # a unit after something else
        (r"\^\{\\circ\}|\^\\circ", ""),
        (r"\{[cm]?m\}(?:\^[23])?", ""),
        (r"p\.m\.$", ""),
        (r"(\d)\s*t$", r"\1"),
        (r"\\\$|\$|x\\in", ""),
        (r"\\%", "%"),
        (r"([ {])\.", r"\g<1>0."),
        (r"\\cdot", ""),
        (r"infinity", r"\\infty"),
        (r"\\mathbf|\\mathrm|\\mbox\{.*?\}", ""),
        (r"(\d+)\.0+(?!\d)", r"\1"),
        (r"^\.", "0."),
        (r"\\(sqrt|tan)(-?[0-9.a-zA-Z]+)", r"\\\1{\2}"),
        (r"\\(sqrt|tan)\s+(\w+)$", r"\\\1{\2}"),
        (r" ", ""),
        (r"\\frac([^{])([^{])", r"\\frac{\1}{\2}"),
        (r"\\frac([^{])\{", r"\\frac{\1}{"),
        (
            r"^(-?(?:0|[1-9]\d*)|[^/]*sqrt[^/]*)/(-?(?:0|[1-9]\d*)|[^/]*sqrt[^/]*)$",
            r"\\frac{\1}{\2}",
        ),
        (r"[\\,.]+$", ""),
    )
)


def extract_as_paper(
    output: str, part: Part, *, listed: bool, language: str
) -> tuple[list[str], str]:
    """Return the answers of an output and the rule of their extraction.

    `part` selects the zero-shot answer, the few-shot answer or the last output of a program. All
    answers are returned if `listed`, else at most one.
    """
    if part == "program":
        printed = program_output(output)
        return [printed] if printed else [], "output"
    if part == "few-shot":
        return few_shot(output, listed=listed, language=language)
    answers, rule = zero_shot(output)
    return answers if listed else answers[-1:], rule


def few_shot(output: str, *, listed: bool, language: str) -> tuple[list[str], str]:
    """Return the answers of a few-shot output before the next example, and their rule.

    The answer is "[invalid]" if a number is expected and missing. There is at most one answer
    unless several are `listed`.
    """
    if listed:
        return zero_shot(output.split("Problem:", 1)[0])
    if language == "en":
        number = last_match(FEW_SHOT_NUMBER, output.split("Q: ", 1)[0])
        return [number or "[invalid]"], "last number"
    head, phrase, following = output.split("问题：", 1)[0].partition("答案是")
    if phrase:
        number = last_match(FEW_SHOT_NUMBER, following.strip().split("\n")[0])
        return [number or "[invalid]"], "phrase"
    answers, rule = zero_shot(head)
    return answers[-1:], rule


def zero_shot(output: str) -> tuple[list[str], str]:
    """Return the normalised answers of an output by the first rule that applies, and the rule."""
    texts, rule = raw_answers(output)
    lines = [text.strip().split("\n")[0].lstrip(":").rstrip(".").rstrip("/") for text in texts]
    return [normalise(line) for line in lines], rule


def raw_answers(output: str) -> tuple[list[str], str]:
    """Return the answers of an output as written, and the rule of their extraction."""
    start, end = "final answer is $", "$. I hope"
    if start in output and end in output:
        return [output.split(start, 1)[1].split(end, 1)[0]], "final answer"
    if "boxed" in output:
        return boxes(output), "boxed"
    if "he answer is" in output:
        return [output.rsplit("he answer is", 1)[1]], "phrase"
    printed = program_output(output)
    if printed:
        return [printed], "output"
    number = last_match(LAST_NUMBER, output.replace(",", ""))
    return ([number], "last number") if number else ([], "none")


def boxes(text: str) -> list[str]:
    """Return the content of every closed box; before a percent sign, with the closing brace."""
    contents: list[str] = []
    for piece in text.split("boxed{")[1:]:
        depth = 0
        for brace in re.finditer(r"[{}]", piece):
            depth += 1 if brace.group() == "{" else -1
            if depth < 0:
                percent = piece.startswith("%", brace.end())
                contents.append(piece[: brace.end() if percent else brace.start()])
                break
    return contents


def program_output(text: str) -> str:
    """Return the content of the last output block; "" without one."""
    _, fence, block = text.rpartition("```output")
    return block.split("```", 1)[0].strip() if fence else ""


def last_match(pattern: re.Pattern[str], text: str) -> str:
    """Return the last match of a pattern; "" without one."""
    matches = pattern.findall(text)
    return matches[-1] if matches else ""


def split_answers(answers: list[str], question: str) -> list[str]:
    r"""Split answers at commas if the question asks for such a list, else at `\text{ and }`."""
    parts: list[str] = []
    for answer in answers:
        if "separated by commas" in question and not re.search(r"[()\[\]]", answer):
            parts += answer.split(",")
        else:
            parts += AND.split(answer)
    return [part.strip() for part in parts]


def normalise(text: str) -> str:
    """Cut an answer to LONGEST characters and return it in the paper's normal notation."""
    current = text.strip()[:LONGEST]
    for pattern, new in ROWS:
        current = pattern.sub(new, current).strip()
    if r"\infty" not in current:
        current = current.replace("inf", r"\infty")
    return current if "i" in current else current.replace("j", "i")
