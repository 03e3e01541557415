"""Detection of the assistant's text in conversations whose chat template does not mark it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.bounded_templates import Tokenizer
from core.data.conversations import Row, chat, with_calls
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
    """Position of an assistant message in a text.

    Attributes:
        front: text before the answer.
        lead: text between the generation prompt and the message's content.
        tail: text after the content.
    """

    front: str
    lead: str
    tail: str


def assistant_pieces(tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row) -> Pieces:
    """Cut the text of a conversation into pieces of the assistant and of others.

    An answer extends from the end of the generation prompt (without an opened thought) to the end
    of its turn. Some templates render earlier answers differently from the last one, such as
    without their `<think>`; every answer is then rendered as it is generated. If the template does
    not end turns, the token that begins the next turn ends the answer.

    Raises:
        BadValue: the template's text does not show where an answer begins or ends.
    """
    template = Template(tokenizer, keywords, messages[0])
    full_text = template.text(messages)
    indices = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    places = [
        (template.place(messages, index), template.place(messages[: index + 1], index))
        for index in indices
    ]
    is_alike = all(place.lead == last_place.lead for place, last_place in places)
    pieces: Pieces = []
    cut_until = 0
    for index, (place, last_place) in zip(indices, places, strict=True):
        is_final = index + 1 == len(messages)
        end = place.tail if is_final else template.common_prefix(place.tail, last_place.tail)
        start, stop = len(place.front), len(full_text) - len(place.tail) + len(end)
        if not cut_until <= start <= stop:
            raise BadValue(NOT_TOLD)
        answer = full_text[start:stop]
        if not is_alike:
            content = answer.removeprefix(place.lead)
            answer = template.generated_answer(messages[: index + 1], last_place, content, end)
        next_turn = "" if template.ends_turns else template.next_beginning(messages, index, end)
        pieces += [(full_text[cut_until:start], False), (answer + next_turn, True)]
        cut_until = stop + len(next_turn)
    return [*pieces, (full_text[cut_until:], False)]


class Template:
    """Chat template of a tokenizer, with the keyword arguments of a row.

    `header` is the generation prompt, without a thought that it opens. Synthetic messages have a
    content of the same form (text or list of parts) as the `example`.
    """

    def __init__(self, tokenizer: Tokenizer, keywords: Row, example: Row):
        self.tokenizer, self.keywords = tokenizer, keywords
        self.added = set(tokenizer.get_added_vocab().values())
        self.example = example
        question = self.message("user")
        prompt = self.text([question], prompt=True)
        begun = prompt[len(self.common_prefix(prompt, self.text([question]))) :]
        self.header = begun.partition(THINK)[0]
        if not self.header:
            raise BadValue(NOT_TOLD)
        tail = self.place([question, self.message("assistant")], 1).tail
        self.ends_turns = any(token in self.added for token, _ in self.tokens(tail))

    def text(self, messages: Sequence[Row], *, prompt: bool = False) -> str:
        """Return a conversation as text; `prompt` appends the generation prompt."""
        return chat(self.tokenizer, messages, self.keywords, prompt=prompt)

    def message(self, role: str) -> Row:
        """Return a short synthetic message of this role."""
        return {"role": role, "content": as_content(self.example, "some words")}

    def place(self, messages: Sequence[Row], index: int) -> Place:
        """Return the position of the assistant message at an index.

        Raises:
            BadValue: the text before it lacks the generation prompt, or its content is missing.
        """
        texts = (
            self.text([*messages[:index], marked_message, *messages[index + 1 :]])
            for marked_message in marked_messages(messages[index])
        )
        before, mark, tail = next((text for text in texts if MARK in text), "").partition(MARK)
        front, header, lead = before.rpartition(self.header)
        if not (mark and header):
            raise BadValue(NOT_TOLD)
        return Place(front + header, lead, tail)

    def generated_answer(
        self, messages: Sequence[Row], place: Place, content: str, end: str
    ) -> str:
        """Return the last answer of a conversation as it is generated.

        Args:
            messages: the conversation up to this answer.
            place: position of the answer in the text of these messages.
            content: what the text of the answer must end with.
            end: the end of the turn.

        Raises:
            BadValue: the text does not end with the content.
        """
        text = self.text(messages)
        answer = text[len(place.front) : len(text) - len(place.tail) + len(end)]
        if not answer.endswith(content):
            raise BadValue(NOT_TOLD)
        return answer

    def next_beginning(self, messages: Sequence[Row], index: int, end: str) -> str:
        """Return the text of the token that begins the next turn; empty if it is no special token.

        After the last message, a user or tool message is assumed to follow.
        """
        role = "tool" if messages[index].get("tool_calls") else "user"
        following = messages[index + 1 :] or [self.message(role)]
        tail = self.place([*messages[: index + 1], *following], index).tail
        remainder = tail.removeprefix(end)
        token, stop = next(iter(self.tokens(remainder)), (None, 0))
        return remainder[:stop] if token in self.added else ""

    def common_prefix(self, first: str, second: str) -> str:
        """Return the longest common prefix of two texts that ends at a token boundary in both."""
        end = 0
        for (token, stop), (second_token, _) in zip(
            self.tokens(first), self.tokens(second), strict=False
        ):
            if token != second_token:
                break
            end = stop
        return first[:end]

    def tokens(self, text: str) -> list[tuple[int, int]]:
        """Return (token id, end offset) for each token of a text."""
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ends = (end for _, end in encoded["offset_mapping"])
        return list(zip(encoded["input_ids"], ends, strict=True))


def marked_messages(message: Row) -> Iterator[Row]:
    """Yield copies of a message with a marker as content, or else as the name of its first call.

    Fields of thoughts are removed.
    """
    plain = {key: value for key, value in message.items() if key not in THOUGHTS}
    yield {**plain, "content": as_content(message, MARK)}
    calls = with_calls(message).get("tool_calls")
    if isinstance(calls, list) and calls:
        function = {**calls[0].get("function", calls[0]), "name": MARK}
        first = {**calls[0], "function": function} if "function" in calls[0] else function
        yield {**plain, "tool_calls": [first, *calls[1:]]}


def as_content(message: Row, text: str) -> object:
    """Return a text in the form of a message's content: a string, or a list with one part."""
    return [{"type": "text", "text": text}] if isinstance(message.get("content"), list) else text
