"""Conversations through a chat template."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jinja2 import UndefinedError

from core.bounded_templates import apply_template
from eval.errors import BadValue

Row: TypeAlias = Mapping[str, Any]  # Any: a row of a dataset, or a message
Tokenizer: TypeAlias = Any  # Any: a PreTrainedTokenizerBase, whose declared types are unions


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
        return apply_template(tokenizer, turns, **keywords)
    except BadValue as error:
        mapped = [with_mappings(turn) for turn in turns]
        if not isinstance(error.__cause__, TypeError | UndefinedError) or mapped == turns:
            raise
        return apply_template(tokenizer, mapped, **keywords)


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
