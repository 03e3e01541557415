r"""Splits an output into its reasoning and the part that states the answer.

Reasoning is enclosed by marks such as `<think>`, `<reasoning>`, `[THINK]`, `◁think▷`,
`<|begin_of_thought|>` and `<seed:think>`, or precedes the final message of a format with several
messages. If the chat template opens the reasoning, an output has its closing mark alone.
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
    "scratch": "scratch scratchpad working monologue cot plan planning",
}
KIND_OF = {word: kind for kind, names in KINDS.items() for word in names.split()}
ANSWER = frozenset(("answer", "answers", "solution", "response", "conclusion", "final", "box"))
CLOSING = frozenset(("end", "stop"))
TAG = re.compile(  # its name may have several words, and attributes
    r"(?:<|◁|\[(?=/?THINK))\|?\s?(?P<slash>[/\\]?)\s?(?P<name>[A-Za-z][\w:|-]{2,40}?)"
    r"(?:\s[^<>=]{1,30}=[^<>]{0,80})?\s?\|?[>▷\]]"
)
OPENS = (
    r"<\|channel\|?>\s?(?:analysis|commentary|thought)\b|<\|im_start\|>(?:assistant/)?think\b"
    r"|<\|inner_prefix\|>|<unused94>thought\b"
    r"|\AHere(?: is|['’]s) my thought process:|\Aanalysis(?=[^\W\d_])"
)
CLOSES = (
    r"<\|channel\|>\s?final\b(?:[^<]{0,40}<\|message\|>)?|<channel\|>|<\|im_start\|>answer\b"
    r"|<\|inner_suffix\|>|<unused95>|assistantfinal"
)
RESUMES = (  # closes open reasoning and has no effect elsewhere
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
    """Return the spans of an output outside its reasoning, in order.

    The list is empty for an output that ends within its reasoning and so gives no answer.
    """
    spans: list[Span] = []
    start, open_kind, output_end = 0, "", len(output.rstrip())
    for begin, end, effect, kind in reasoning_marks(output):
        if not takes_effect(effect, kind, open_kind):
            continue
        if effect == "opens":
            spans.append((start, begin))
            open_kind = kind
            continue
        if not open_kind:  # the template opened this reasoning, unless the mark is a second one
            is_repeated = bool(spans) and end == output_end
            spans = [*spans, (start, begin)] if is_repeated else [(end, end)]
        start, open_kind = end, ""
    return [] if open_kind else [*spans, (start, len(output))]


def takes_effect(effect: str, kind: str, open_kind: str) -> bool:
    """Return whether a mark opens or closes reasoning, given the kind of reasoning that is open.

    Inside reasoning of one kind, the marks of another kind have no effect. `open_kind` is empty
    outside of reasoning.
    """
    if not open_kind:
        return effect != "resumes"
    is_nested = kind in KINDS and open_kind in KINDS and kind != open_kind
    return effect != "opens" and not is_nested


def is_stated(position: int, spans: list[Span]) -> bool:
    """Return whether a position of an output is in one of its stated spans."""
    before = bisect(spans, (position, len(spans) and spans[-1][1]))
    return before > 0 and position <= spans[before - 1][1]


def reasoning_marks(output: str) -> list[tuple[int, int, str, str]]:
    """Return start, end, effect and kind of each mark of reasoning, in order.

    The effect is "opens", "closes" or "resumes". Tags in quotes are left out.
    """
    marks = [(*m.span(), m.lastgroup or "", "message") for m in MESSAGE.finditer(output)]
    for tag in tags(output):
        kinds = [KIND_OF[word] for word in tag_words(tag) if word in KIND_OF]
        if kinds:
            marks.append((*tag.span(), "closes" if is_closing(tag) else "opens", kinds[-1]))
    return sorted(marks)


def tags(text: str) -> list[re.Match[str]]:
    """Return the tags of a text that are not in quotes."""
    if not any(sign in text for sign in ("<", "◁", "[")):
        return []
    return [
        tag
        for tag in TAG.finditer(text)
        if not {text[tag.start() - 1 : tag.start()], text[tag.end() : tag.end() + 1]} <= QUOTES
    ]


def tag_words(tag: re.Match[str]) -> list[str]:
    """Return the words of a tag's name in lower case, as the pattern `WORD` separates them."""
    return WORD.findall(tag["name"].lower())


def is_closing(tag: re.Match[str]) -> bool:
    """Return whether a tag is a closing one, as `</think>` and `<|end_of_thought|>`."""
    return bool(tag["slash"]) or not CLOSING.isdisjoint(tag_words(tag))


def stated_texts(output: str) -> list[str]:
    """Return the last passage outside the reasoning, then all such passages joined.

    If there is one passage, it is returned alone; for an output that ends within its reasoning the
    list is empty.
    """
    passages = [output[start:end] for start, end in stated_spans(output)]
    nonempty = [text for text in passages if text.strip()]
    if not nonempty:
        return passages[-1:]
    return [nonempty[-1]] if len(nonempty) == 1 else [nonempty[-1], " ".join(nonempty)]


def marked_answer(text: str) -> str:
    """Return the content of a text's last answer tag, else the text without its answer tags.

    A content of one line is preceded by "Answer: ". A token that ends a turn ends a line.
    """
    turn = TURN_END.sub("\n", text)
    contents: list[str] = []
    start, is_open = 0, False
    marks = [tag for tag in tags(turn) if not ANSWER.isdisjoint(tag_words(tag))]
    for tag in marks:
        if is_closing(tag):
            contents.append(turn[start : tag.start()])
        is_open, start = not is_closing(tag), tag.end()
    if is_open:
        contents.append(turn[start:])
    answers = [content.strip() for content in contents if not is_placeholder(content)]
    if not answers:
        return without(turn, marks)
    return answers[-1] if "\n" in answers[-1] else f"Answer: {answers[-1]}"


def without(text: str, matches: list[re.Match[str]]) -> str:
    """Return the text with each match replaced by a space."""
    ends = [0, *(m.end() for m in matches)]
    starts = [*(m.start() for m in matches), len(text)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
