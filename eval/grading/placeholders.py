r"""Tells boxes with an answer from those of a recited request: "put it in `\boxed{}`"."""

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
NEAR = 40  # characters before a box and after it that tell a request


def is_placeholder(content: str) -> bool:
    """Return whether a text stands for an answer that is not there: nothing, `your answer`."""
    bare = COMMAND.sub(" ", content)
    found = [word.casefold() for word in WORD.findall(bare)]
    if not found:
        return set(bare) <= EMPTY
    return not PLACEHOLDERS.isdisjoint(found) and AROUND.issuperset(found)


def without_requests(text: str) -> tuple[str, int]:
    r"""Return a text without the boxes of recited requests, and where it goes on after them.

    A box without an answer stays if it ends the text or follows an answer, unless the words around
    it are those of a request: it is an answer that was not given.
    """
    empty = [m for m in SHORT_BOX.finditer(text) if is_placeholder(m["content"] or "")]
    if not empty:
        return text, 0
    starts = {box.start() for box in empty}
    last = max((m.start() for m in BOX.finditer(text) if m.start() not in starts), default=-1)
    end = next(i for i in range(len(text), 0, -1) if text[i - 1].isalnum())

    def is_request(box: re.Match[str]) -> bool:
        before = max(0, box.start() - NEAR), box.start()
        asked = BEFORE.search(text, *before) or AFTER.match(text, box.end())
        return bool(asked) or (box.start() < last if last >= 0 else box.end() < end)

    pieces: list[str] = []
    start = 0
    for box in filter(is_request, empty):
        pieces.append(text[start : box.start()])
        start = box.end()
    return "".join([*pieces, text[start:]]), sum(map(len, pieces))
