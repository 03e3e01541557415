r"""Cuts a model's output into its reasoning and the part that states the answer.

Reasoning stands between marks such as `<think>`, `<reasoning>`, `[THINK]`, `◁think▷`,
`<|begin_of_thought|>` and `<seed:think>`, or before the final message of a format with several
messages. Where the chat template opened the reasoning, an output holds its closing mark alone.
"""

import re
from bisect import bisect

from eval.grading.placeholders import is_placeholder

Span = tuple[int, int]

KINDS = {  # of reasoning, by the words that name it
    "think": "think thinking thought thoughts",
    "reason": "reason reasoning rationale",
    "reflect": "reflect reflection reflecting",
    "analysis": "analysis",
    "scratch": "scratch scratchpad working monologue cot",
}
KIND_OF = {word: kind for kind, names in KINDS.items() for word in names.split()}
ANSWER = frozenset(("answer", "answers", "solution", "response", "conclusion", "final", "box"))
CLOSING = frozenset(("end", "stop"))
TAG = re.compile(  # its name may have several words, and attributes
    r"(?:<|◁|\[(?=/?THINK))\|?(?P<slash>/?)(?P<name>[A-Za-z][\w:|-]{2,40}?)"
    r"(?:\s[^<>=]{1,30}=[^<>]{0,80})?\|?[>▷\]]"
)
OPENS = (
    r"<\|channel\|?>\s?(?:analysis|commentary|thought)\b|<\|im_start\|>(?:assistant/)?think\b"
    r"|<\|inner_prefix\|>|\AHere(?: is|['’]s) my thought process:|\Aanalysis(?=[^\W\d_])"
)
CLOSES = (
    r"<\|channel\|>\s?final\b(?:[^<]{0,40}<\|message\|>)?|<channel\|>|<\|im_start\|>answer\b"
    r"|<\|inner_suffix\|>|assistantfinal"
)
RESUMES = (  # closes reasoning that is open, and means nothing elsewhere
    r"<\|im_start\|>assistant\b(?!/)|<\|content\|>|Here(?: is|['’]s) my response:"
)
MESSAGE = re.compile(rf"(?P<opens>{OPENS})|(?P<closes>{CLOSES})|(?P<resumes>{RESUMES})")
TURN_END = re.compile(
    r"<\|(?:return|end|im_end|eot_id|eom_id|eot|endoftext|end_of_text|endofturn|END_OF_TURN_TOKEN)\|>"
    r"|<end_of_turn>|<turn\|>|<[｜|]end[▁_]of[▁_]sentence[｜|]>|</s>"
)
WORD = re.compile(r"[a-z]+")
QUOTES = frozenset("`'\"“”‘’")


def stated_spans(output: str) -> list[Span]:
    """Return where an output speaks outside its reasoning, in order.

    Empty for an output that ends within its reasoning: it has given no answer yet.
    """
    spans: list[Span] = []
    start, inside, ends = 0, "", len(output.rstrip())
    for at, end, effect, kind in reasoning_marks(output):
        if effect == "opens":
            if not inside:
                spans.append((start, at))
                inside = kind
            continue
        if effect == "resumes" and not inside:
            continue
        if inside and kind in KINDS and inside in KINDS and kind != inside:
            continue  # a passage of another kind within it
        if not inside:  # the template opened this reasoning, unless the mark is a second one
            spans = [*spans, (start, at)] if spans and end == ends else [(end, end)]
        start, inside = end, ""
    return [] if inside else [*spans, (start, len(output))]


def is_stated(at: int, spans: list[Span]) -> bool:
    """Return whether one of the spans of an output holds a place of it."""
    before = bisect(spans, (at, len(spans) and spans[-1][1]))
    return before > 0 and at <= spans[before - 1][1]


def reasoning_marks(output: str) -> list[tuple[int, int, str, str]]:
    """Return start, end, effect and kind of each mark of reasoning, in order; no quoted ones."""
    found = [(*m.span(), m.lastgroup or "", "message") for m in MESSAGE.finditer(output)]
    for tag in tags(output):
        kinds = [KIND_OF[word] for word in words(tag) if word in KIND_OF]
        if kinds:
            found.append((*tag.span(), "closes" if is_closing(tag) else "opens", kinds[-1]))
    return sorted(found)


def tags(text: str) -> list[re.Match[str]]:
    """Return the tags of a text but for those in quotes."""
    if not any(sign in text for sign in ("<", "◁", "[")):
        return []
    return [
        tag
        for tag in TAG.finditer(text)
        if not {text[tag.start() - 1 : tag.start()], text[tag.end() : tag.end() + 1]} <= QUOTES
    ]


def words(tag: re.Match[str]) -> list[str]:
    """Return the words of a tag's name in lower case."""
    return WORD.findall(tag["name"].lower())


def is_closing(tag: re.Match[str]) -> bool:
    """Return whether a tag closes what another one opened: `</think>`, `<|end_of_thought|>`."""
    return bool(tag["slash"]) or not CLOSING.isdisjoint(words(tag))


def stated_texts(output: str) -> list[str]:
    """Return the text outside the reasoning: the last passage first, then all of them together.

    One text where there is one passage; none where the output ends within its reasoning.
    """
    passages = [output[start:end] for start, end in stated_spans(output)]
    spoken = [text for text in passages if text.strip()]
    if not spoken:
        return passages[-1:]
    return [spoken[-1]] if len(spoken) == 1 else [spoken[-1], " ".join(spoken)]


def marked_answer(text: str) -> str:
    """Return what a text's last answer mark holds, `Answer: ` before one line; else all of it.

    A token that ends a turn ends a line.
    """
    turn = TURN_END.sub("\n", text)
    contents: list[str] = []
    start, opened = 0, False
    marks = [tag for tag in tags(turn) if not ANSWER.isdisjoint(words(tag))]
    for tag in marks:
        if is_closing(tag):
            contents.append(turn[start : tag.start()])
        opened, start = not is_closing(tag), tag.end()
    if opened:
        contents.append(turn[start:])
    held = [content.strip() for content in contents if not is_placeholder(content)]
    if not held:
        return without(turn, marks)
    return held[-1] if "\n" in held[-1] else f"Answer: {held[-1]}"


def without(text: str, found: list[re.Match[str]]) -> str:
    """Return a text with a space in the place of each match."""
    ends = [0, *(m.end() for m in found)]
    starts = [*(m.start() for m in found), len(text)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
