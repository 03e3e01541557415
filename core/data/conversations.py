"""Conversations through a chat template, and which of their tokens the assistant wrote."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jinja2 import UndefinedError
from transformers.utils import logging

from eval.errors import BadValue

Row: TypeAlias = Mapping[str, Any]  # Any: a row of a dataset, or a message
Tokenizer: TypeAlias = Any  # Any: a PreTrainedTokenizerBase, whose declared types are unions
GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
logger = logging.get_logger(__name__)


def template_keywords(row: Row) -> Row:
    """What the chat template gets besides the messages: the row's `tools` and own keywords."""
    given = row.get("tools")
    tools = json.loads(given) if isinstance(given, str) else given
    return {"tools": tools, **(row.get("chat_template_kwargs") or {})}


def templated(tokenizer: Tokenizer, messages: Sequence[Row], **keywords: Any) -> Any:  # Any: text
    """Apply the chat template to messages; tool calls kept as JSON text are parsed.

    Arguments that are text stay so, unless the template takes nothing but a mapping.
    """
    turns = [with_calls(turn) for turn in messages]
    try:
        return tokenizer.apply_chat_template(turns, **keywords)
    except (TypeError, UndefinedError):
        mapped = [with_mappings(turn) for turn in turns]
        if mapped == turns:
            raise
        return tokenizer.apply_chat_template(mapped, **keywords)


def with_calls(turn: Row) -> Row:
    """Return a message whose `tool_calls` are a list, each a mapping."""
    calls = from_json(turn.get("tool_calls"))
    if not isinstance(calls, list):
        return turn
    return {**turn, "tool_calls": [from_json(call) for call in calls]}


def with_mappings(turn: Row) -> Row:
    """Return a message whose tool calls have mappings as arguments."""
    if not isinstance(turn.get("tool_calls"), list):
        return turn
    calls = []
    for call in turn["tool_calls"]:
        function = call.get("function", call)
        parsed = {**function, "arguments": from_json(function.get("arguments"))}
        calls.append({**call, "function": parsed} if "function" in call else parsed)
    return {**turn, "tool_calls": calls}


def from_json(value: Any) -> Any:  # Any: of JSON
    """Return what a text of JSON holds; another value as it is.

    Raises:
        BadValue: the text is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise BadValue(f"{value!r} of a tool call in the dataset: expected JSON, {error}") from None


def chat(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row, *, prompt: bool = False
) -> str:
    """A conversation as text; with what begins the assistant's turn if it is a prompt."""
    options = {**keywords, "add_generation_prompt": prompt}
    return templated(tokenizer, messages, tokenize=False, **options)


def assistant_tokens(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row
) -> tuple[list[int], list[bool]]:
    """Token ids of a conversation, and which of them its assistant wrote.

    A chat template may say so with `{% generation %}` blocks. Of another, the assistant wrote what
    stands between the prompt of generation and the end of the turn, its end token included.

    Raises:
        BadValue: the template does not tell, or nothing is the assistant's.
    """
    if not tokenizer.is_fast:
        raise BadValue("assistant_only_loss=True needs a fast tokenizer: this one knows no offsets")
    if GENERATION.search(tokenizer.get_chat_template(tools=keywords.get("tools"))):
        found = templated(
            tokenizer, messages, return_dict=True, return_assistant_tokens_mask=True, **keywords
        )
        ids, kept = found["input_ids"], [bool(keep) for keep in found["assistant_masks"]]
        warn_of_no_end(tokenizer, ids, kept)
    else:
        ids, kept = between_prompts(tokenizer, messages, keywords)
    if not any(kept):
        raise BadValue(
            "assistant_only_loss=True, but a conversation has no tokens of an assistant: found "
            f"turns of {', '.join(str(turn['role']) for turn in messages)}"
        )
    return ids, kept


def between_prompts(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row
) -> tuple[list[int], list[bool]]:
    """The same from the template alone: a turn is what it adds to the prompt before it.

    Raises:
        BadValue: the template writes a turn otherwise once the conversation goes on.
    """
    whole = chat(tokenizer, messages, keywords)
    spans: list[tuple[int, int]] = []
    for at, turn in enumerate(messages):
        if turn["role"] != "assistant":
            continue
        before = chat(tokenizer, messages[:at], keywords, prompt=True) if at else None
        after = chat(tokenizer, messages[: at + 1], keywords)
        if before is None or not (after.startswith(before) and whole.startswith(after)):
            raise BadValue(
                "assistant_only_loss=True, but the chat template does not tell which tokens are "
                "the assistant's: mark them in it with {% generation %} ... {% endgeneration %}"
            )
        spans.append((len(before), len(after)))
    found = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    kept = [
        any(start < stop and end > begin for begin, stop in spans)
        for start, end in found["offset_mapping"]
    ]
    return found["input_ids"], kept


def warn_of_no_end(tokenizer: Tokenizer, ids: Sequence[int], kept: Sequence[bool]) -> None:
    """Say so where a turn's last word is kept and the token of the template that ends it is not."""
    added = set(tokenizer.get_added_vocab().values())
    for at, following in enumerate(ids[1:]):
        if kept[at] and not kept[at + 1] and following in added:
            visible = (
                token for token in reversed(ids[: at + 1]) if tokenizer.decode(token).strip()
            )
            if next(visible, following) not in added:
                logger.warning_once(
                    "the chat template's generation blocks leave out the token that ends the "
                    "assistant's turn: the model does not learn to stop; put it into the blocks"
                )
