r"""Finds the boxes of a model's output that count: `\boxed{}` or `\fbox{}`."""

import re

from eval.grading.cleaning import clean
from eval.grading.placeholders import BOX
from eval.grading.structure import form_of
from eval.grading.verdict import Extraction
from eval.sets.problem import Answers

BETWEEN_BOXES = re.compile(
    r"\s*+\$*+\s*+(?:[,;、]|(?:,\s*)?(?:and|or)(?![A-Za-z])|\\text\s*\{\s*+,?\s*+(?:and|or)\s*\}|和|或)"
    r"\s*+\$*+\s*+(?:[A-Za-z]\s*=\s*)?"
)
BOXES = 20  # the boxes at a text's end that can be parts of one answer
GAP = 40  # characters between two of them
LONGEST = 500  # characters of a formula or a list that are read


def last_box(text: str) -> Extraction | None:
    """The content of the last box; no text when it was never closed or is empty."""
    marks = list(BOX.finditer(text))
    return Extraction(box_at(text, marks[-1].end())[0], "boxed") if marks else None


def boxes_for(text: str, answers: Answers) -> Extraction | None:
    """The box that counts, with those that belong to the same answer."""
    if answers.counts == "first":
        mark = BOX.search(text)
        return mark and Extraction(box_at(text, mark.end())[0], "boxed")
    return final_boxes(text, len(answers.texts) if answers.counts == "all" else 1)


def final_boxes(text: str, asked: int) -> Extraction | None:
    """The last box, with those before it: the last `asked`, unless it lists as many answers."""
    last = last_box(text)
    if last is None or last.text is None:
        return last
    *marks, following = list(BOX.finditer(text))[-BOXES:]
    wanted = asked if asked > 1 and members(last.text[:LONGEST]) < asked else 1
    parts = [last.text]
    for mark in reversed(marks):
        content, end = box_at(text, mark.end())
        near = 0 < end < following.start() <= end + GAP
        joined = near and BETWEEN_BOXES.fullmatch(text, end + 1, following.start())
        if content is None or not (joined or len(parts) < wanted):
            break
        parts = [content, *(part for part in parts if part != content)]
        following = mark
    return last if len(parts) == 1 else Extraction("; ".join(parts), "boxed", tuple(parts))


def members(text: str) -> int:
    """How many answers a box lists."""
    form = form_of(clean(text))
    return len(form.parts) if form.kind == "list" else 1


def box_at(text: str, start: int) -> tuple[str | None, int]:
    """The content of the box whose brace is at `start`, if any, and the index where it ends."""
    if not text.startswith("{", start):
        bare = re.match(r"[^\s$\\]+", text[start : start + 500])
        return (bare.group().rstrip(".,;") or None if bare else None), -1
    end = closing(text, start)
    return (text[start + 1 : end].strip() or None if end > 0 else None), end


def closing(text: str, start: int) -> int:
    r"""The index of the brace that closes the one at `start`; -1 when none does (`\{` is text)."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.start()
    return -1
