r"""Finds the boxes of an output that hold its answer: `\boxed{}` or `\fbox{}`."""

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
BOXES = 20  # at most this many boxes at the end of a text form one answer
GAP = 40  # at most this many characters are between two of them
LONGEST = 500  # characters of a box in which the members of a list are counted


def last_box(text: str) -> Extraction | None:
    """Return the content of the last box; its text is None if the box is empty or never closed."""
    marks = list(BOX.finditer(text))
    return Extraction(box_at(text, marks[-1].end())[0], "boxed") if marks else None


def boxes_for(text: str, answers: Answers) -> Extraction | None:
    """Return the content of the boxes that count for the reference answers; None without a box."""
    if answers.counts == "first":
        mark = BOX.search(text)
        return mark and Extraction(box_at(text, mark.end())[0], "boxed")
    return final_boxes(text, len(answers.texts) if answers.counts == "all" else 1)


def final_boxes(text: str, answer_count: int) -> Extraction | None:
    """Return the last box together with the boxes before it that belong to the same answer.

    Boxes belong together if only a separator such as a comma or "and" is between them, or if
    several answers are required and the last box does not list all of them.
    """
    last = last_box(text)
    if last is None or last.text is None:
        return last
    *marks, following = list(BOX.finditer(text))[-BOXES:]
    box_count = count_boxes_needed(last.text, answer_count)
    parts = [last.text]
    for mark in reversed(marks):
        content, end = box_at(text, mark.end())
        belongs = len(parts) < box_count or are_joined(text, end, following.start())
        if content is None or not belongs:
            break
        parts = [content, *(part for part in parts if part != content)]
        following = mark
    return last if len(parts) == 1 else Extraction("; ".join(parts), "boxed", tuple(parts))


def are_joined(text: str, end: int, start: int) -> bool:
    """Return whether only a separator is between a box that ends at `end` and one at `start`."""
    if not 0 < end < start <= end + GAP:
        return False
    return BETWEEN_BOXES.fullmatch(text, end + 1, start) is not None


def count_boxes_needed(last: str, answer_count: int) -> int:
    """Return how many boxes hold the answers: 1 if the content of the last box lists them all."""
    lists_all = answer_count == 1 or count_members(last[:LONGEST]) >= answer_count
    return 1 if lists_all else answer_count


def count_members(text: str) -> int:
    """Count the answers that the content of a box lists; 1 if it is not a list."""
    form = form_of(clean(text))
    return len(form.parts) if form.kind == "list" else 1


def box_at(text: str, start: int) -> tuple[str | None, int]:
    """Return the content of the box whose brace is at `start`, and the index of its last brace.

    A box without braces holds the characters up to a space. The content is None if the box is
    empty or never closed; the index is -1 if no brace closes it.
    """
    if not text.startswith("{", start):
        bare = re.match(r"[^\s$\\]+", text[start : start + 500])
        return (bare.group().rstrip(".,;") or None if bare else None), -1
    end = closing_brace(text, start)
    return (text[start + 1 : end].strip() or None if end > 0 else None), end


def closing_brace(text: str, start: int) -> int:
    r"""Return the index of the brace that closes the one at `start`; -1 if none. `\{` is text."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.start()
    return -1
