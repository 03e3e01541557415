"""The assistant's text in a conversation, found where a chat template does not mark it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.data.conversations import Row, Tokenizer, chat, with_calls
from eval.errors import BadValue

THINK = "<think>"
MARK = "content-of-this-turn"
THOUGHTS = ("reasoning_content", "reasoning", "thinking")  # fields of a message
NOT_TOLD = (
    "assistant_only_loss=True, but the chat template does not tell which tokens are the "
    "assistant's: mark them in it with {% generation %} ... {% endgeneration %}"
)
Pieces = list[tuple[str, bool]]  # texts that follow each other; whether the assistant wrote each


@dataclass(frozen=True)
class Place:
    """The place of a turn in a text: what precedes its answer, leads to its content, follows it."""

    front: str
    lead: str
    tail: str


def assistant_pieces(tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row) -> Pieces:
    """Cut a conversation into texts of its assistant and others.

    An answer stands between what begins it in a prompt of generation, but for a thought that the
    prompt opens, and the end of its turn. Some templates write answers otherwise once the
    conversation goes on, such as without their `<think>`: every answer is then written as it is
    generated. Where a template does not end turns, the token that begins the next one does.

    Raises:
        BadValue: the template writes no such turn.
    """
    template = Template(tokenizer, keywords, messages[0])
    whole = template.text(messages)
    turns = [at for at, turn in enumerate(messages) if turn["role"] == "assistant"]
    places = [template.place(messages, at) for at in turns]
    alone = [template.place(messages[: at + 1], at) for at in turns]
    alike = all(one.lead == other.lead for one, other in zip(places, alone, strict=True))
    pieces: Pieces = []
    done = 0
    for at, place, last in zip(turns, places, alone, strict=True):
        final = at + 1 == len(messages)
        end = place.tail if final else template.shared(place.tail, last.tail)
        start, stop = len(place.front), len(whole) - len(place.tail) + len(end)
        if not done <= start <= stop:
            raise BadValue(NOT_TOLD)
        answer = whole[start:stop]
        if not alike:
            text = template.text(messages[: at + 1])
            generated = text[len(last.front) : len(text) - len(last.tail) + len(end)]
            if not generated.endswith(answer.removeprefix(place.lead)):
                raise BadValue(NOT_TOLD)
            answer = generated
        next_turn = "" if template.ends_turns else template.next_beginning(messages, at, end)
        pieces += [(whole[done:start], False), (answer + next_turn, True)]
        done = stop + (0 if final else len(next_turn))
    return [*pieces, (whole[done:], False)]


class Template:
    """The chat template of a tokenizer with the keywords of a row.

    `header` is what it puts before an answer to generate, a thought that it opens left out. Another
    message has a content of the same form as the `example`.
    """

    def __init__(self, tokenizer: Tokenizer, keywords: Row, example: Row):
        self.tokenizer, self.keywords = tokenizer, keywords
        self.added = set(tokenizer.get_added_vocab().values())
        self.example = example
        question = self.message("user")
        prompt = self.text([question], prompt=True)
        begun = prompt[len(self.shared(prompt, self.text([question]))) :]
        self.header = begun.partition(THINK)[0]
        if not self.header:
            raise BadValue(NOT_TOLD)
        tail = self.place([question, self.message("assistant")], 1).tail
        self.ends_turns = any(token in self.added for token, _ in self.encoded(tail))

    def text(self, messages: Sequence[Row], *, prompt: bool = False) -> str:
        """A conversation as text; with what begins the assistant's turn if it is a prompt."""
        return chat(self.tokenizer, messages, self.keywords, prompt=prompt)

    def message(self, role: str) -> Row:
        """A message of a few words."""
        return {"role": role, "content": like(self.example, "some words")}

    def place(self, messages: Sequence[Row], at: int) -> Place:
        """Return the place of the answer at a position.

        Raises:
            BadValue: it begins otherwise than a prompt of generation ends, or lacks its content.
        """
        texts = (
            self.text([*messages[:at], marked, *messages[at + 1 :]])
            for marked in with_mark(messages[at])
        )
        before, mark, tail = next((t for t in texts if MARK in t), "").partition(MARK)
        front, header, lead = before.rpartition(self.header)
        if not (mark and header):
            raise BadValue(NOT_TOLD)
        return Place(front + header, lead, tail)

    def next_beginning(self, messages: Sequence[Row], at: int, end: str) -> str:
        """The token that begins the next turn, as text; of a user or a tool if there is none."""
        role = "tool" if messages[at].get("tool_calls") else "user"
        following = messages[at + 1 :] or [self.message(role)]
        tail = self.place([*messages[: at + 1], *following], at).tail
        rest = tail.removeprefix(end)
        token, stop = next(iter(self.encoded(rest)), (None, 0))
        return rest[:stop] if token in self.added else ""

    def shared(self, one: str, other: str) -> str:
        """The longest beginning of two texts that ends where a token does in both."""
        end = 0
        for (token, stop), (same, _) in zip(self.encoded(one), self.encoded(other), strict=False):
            if token != same:
                break
            end = stop
        return one[:end]

    def encoded(self, text: str) -> list[tuple[int, int]]:
        """Return the tokens of a text, each with the place where it ends."""
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ends = (end for _, end in found["offset_mapping"])
        return list(zip(found["input_ids"], ends, strict=True))


def with_mark(turn: Row) -> Iterator[Row]:
    """A message with a content that is found again in its text, or else the name of its call.

    Its thoughts are left out.
    """
    plain = {key: value for key, value in turn.items() if key not in THOUGHTS}
    yield {**plain, "content": like(turn, MARK)}
    calls = with_calls(turn).get("tool_calls")
    if isinstance(calls, list) and calls:
        function = {**calls[0].get("function", calls[0]), "name": MARK}
        first = {**calls[0], "function": function} if "function" in calls[0] else function
        yield {**plain, "tool_calls": [first, *calls[1:]]}


def like(turn: Row, text: str) -> Any:  # Any: a text, or a list of parts
    """A text in the form of a message's content."""
    return [{"type": "text", "text": text}] if isinstance(turn.get("content"), list) else text
