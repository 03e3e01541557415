r"""Distinguishes boxes with an answer from those of a recited request: "put it in `\boxed{}`"."""

import re

NOUNS = (
    "answer answers ans result solution number value expression respuesta réponse reponse antwort "
    "ответ 答案 最终答案 你的答案 答え 回答 결과 jibu উত্তর คำตอบ"
)
MODIFIERS = (
    "a an the your my final correct numeric numerical exact here goes finale endgültige su la tu "
    "votre die ваш"
)
PLACEHOLDERS = frozenset(NOUNS.split())
AROUND = frozenset(MODIFIERS.split()) | PLACEHOLDERS
EMPTY = frozenset(" \t\n._?…□*`'\"“”[]()<>$:;,")
COMMAND = re.compile(
    r"\\(?:text\w*|mathrm|mathbf|mbox|[lc]?dots|q?quad|square|Box|placeholder|[ ,;:!_])|[{}]"
)
WORD = re.compile(r"[^\W\d_]+")
BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
SHORT_BOX = re.compile(  # no digit, and at most one command with braces; or no brace, but a word
    r"\\(?:boxed|fbox)(?![A-Za-z])(?:\s{0,3}\{(?P<content>[^{}\d]{0,60}"
    r"(?:\{[^{}\d]{0,60}\}[^{}\d]{0,10})?)\}"
    r"|(?!\s{0,3}\{)(?:\s{0,3}[^\W\d_]{2,20}(?!\w)|(?=[`'\"”.,;:!?)])))"
)
BEFORE = re.compile(
    r"(?:(?:\b(?:in|inside|into|within|using|use|with|format|form|wrap\w*|as|box|dans|dentro\sde|en|mit"
    r"|innerhalb|в|внутри)\b[^.!?\n\\]{0,25})|[放写填][^。\n\\]{0,12}|用|以)\Z",
    re.IGNORECASE,
)
AFTER = re.compile(
    r"[`'\"”$)]{0,3}\s?(?:notation|format|command|environment|brackets|中|内|里|の中|に|で|形式)"
)
NEAR = 40  # characters before a box that are searched for the words of a request


def is_placeholder(content: str) -> bool:
    """Return whether a text is empty or stands for a missing answer, such as `your answer`."""
    bare = COMMAND.sub(" ", content)
    bare_words = [word.casefold() for word in WORD.findall(bare)]
    if not bare_words:
        return set(bare) <= EMPTY
    return not PLACEHOLDERS.isdisjoint(bare_words) and AROUND.issuperset(bare_words)


def without_requests(text: str) -> tuple[str, int]:
    r"""Remove the boxes of recited requests; return the text and the end of the last such box.

    The end is an index into the returned text, 0 if nothing was removed. A box without an answer is
    an answer left out, and stays, if it ends the text or follows an answer, unless the words around
    it are those of a request.
    """
    empty_boxes = [m for m in SHORT_BOX.finditer(text) if is_placeholder(m["content"] or "")]
    if not empty_boxes:
        return text, 0
    answer_start = last_answer_start(text, empty_boxes)
    pieces: list[str] = []
    start = 0
    for box in empty_boxes:
        if box.end() <= answer_start or has_words_of_request(text, box):
            pieces.append(text[start : box.start()])
            start = box.end()
    return "".join([*pieces, text[start:]]), sum(map(len, pieces))


def last_answer_start(text: str, empty_boxes: list[re.Match[str]]) -> int:
    """Return the index of the last box with an answer; without one, of the last letter or digit."""
    starts = {box.start() for box in empty_boxes}
    last = max((m.start() for m in BOX.finditer(text) if m.start() not in starts), default=-1)
    if last >= 0:
        return last
    return next(i for i in range(len(text) - 1, -1, -1) if text[i].isalnum())


def has_words_of_request(text: str, box: re.Match[str]) -> bool:
    """Return whether the words around a box are those of a request, such as "inside"."""
    before = BEFORE.search(text, max(0, box.start() - NEAR), box.start())
    return bool(before or AFTER.match(text, box.end()))
